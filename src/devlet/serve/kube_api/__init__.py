"""The Kubernetes REST API in front of the embedded cluster: what kubectl, client-go and the real control plane speak.

Translates between HTTP and the port; the rules about objects are the store's."""
