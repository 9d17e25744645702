"""A cluster that is somebody's: reached by a context that the user names, with namespaces and queues of our own."""
