"""kind without a container registry: images from a Debian mirror, Go modules and a Python index (docs/airgap.md)."""
