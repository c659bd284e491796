"""Device plugins, v1beta1: the version in use since Kubernetes 1.10."""
