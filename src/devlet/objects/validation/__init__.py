"""The checks of objects, one module per noun. `objects.kind_rules` says which kind is checked by which of them.

The checks are pure and raise nothing: they yield what is wrong as causes, with the paths and reasons of a Kubernetes
API server.
"""
