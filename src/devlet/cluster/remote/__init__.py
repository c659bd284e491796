"""The cluster port in front of a Kubernetes API server, or of another devlet's socket.

HTTP ends here: callers see documents and the errors of `devlet.errors`.
"""
