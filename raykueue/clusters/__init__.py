"""What a cluster is, and its backends."""
