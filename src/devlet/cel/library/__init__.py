"""One module per library of functions; each has a `LIBRARY`, or several versions of it.

`devlet.cel.environment` determines which of them exist in which release of Kubernetes.
"""
