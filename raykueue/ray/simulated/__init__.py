"""The simulated Ray: one process that plays every head's dashboard and every submitter of an embedded cluster.

`jobs` and `simulation` are pure: what a Ray job is, and when it exists. `dashboard`, `submitters` and `instructions`
are its three doors: KubeRay's HTTP calls, the pods whose status it ends, and the control socket for test processes.
"""
