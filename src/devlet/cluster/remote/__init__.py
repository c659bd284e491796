"""A real Kubernetes API server, or a devlet's own socket, behind the cluster port. HTTP stops here: callers see
documents and the errors of `devlet.errors`."""
