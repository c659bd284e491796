"""DRA v1alpha3, of drivers for Kubernetes 1.28 to 1.30. It shares its service name with v1alpha4, but not its messages."""
