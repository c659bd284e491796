"""The Kubernetes REST API of the embedded cluster, for kubectl, client-go and the real control plane.

This package translates between HTTP and a store (`cluster.served_store`). The store has the rules about objects, and
`devlet.auth` decides about users."""
