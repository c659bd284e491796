"""Validation of objects, one module per type. `objects.kind_rules` assigns the checks to kinds.

The checks are pure and do not raise: they yield errors as causes, with the paths and reasons of a Kubernetes API
server.
"""
