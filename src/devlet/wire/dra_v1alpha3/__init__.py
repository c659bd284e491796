"""DRA v1alpha3, of drivers for Kubernetes 1.28 to 1.30. v1alpha4 has its service name, and other messages."""
