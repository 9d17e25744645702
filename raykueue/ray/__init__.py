"""How a test controls a Ray job: the simulated Ray, and real Ray."""
