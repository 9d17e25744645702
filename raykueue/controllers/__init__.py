"""KubeRay and Kueue: what to install, how configured, when ready, for any backend."""
