"""How a container gets a device: CDI, OCI specs, container engines."""
