"""Builds and caches the pinned binaries."""
