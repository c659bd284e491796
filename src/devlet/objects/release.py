"""The versions of devlet, and of Kubernetes, whose behavior it follows."""

DEVLET = "0.1.0"
KUBERNETES = "v1.36.4"  # the release whose behavior devlet follows
