"""Device plugins of Kubernetes 1.8 and 1.9."""
