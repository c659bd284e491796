"""The messages of the Kubernetes API, and the JSON shape of documents."""
