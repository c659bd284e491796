"""DRA v1alpha2, of drivers for Kubernetes 1.27: one claim per call."""
