"""Many pairs of versions: which run, each in its own process and cluster, and what came of all of them."""
