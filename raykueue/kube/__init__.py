"""API access: client, kinds, list+watch, apply."""
