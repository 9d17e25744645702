"""A cluster of processes on loopback: real control plane and controllers, simulated nodes."""
