"""Which devlet this is, and which Kubernetes it follows."""

DEVLET = "0.1.0"
KUBERNETES = "v1.36.4"  # whose behaviour we follow
