"""Clusters of kind: nodes are containers, with a real kubelet, real images and real Ray."""
