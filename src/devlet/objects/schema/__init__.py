"""The messages of the Kubernetes API, and documents brought into their shape."""
