"""Kubernetes objects and device values: documents, typed views, rules. Pure: no I/O, no clock, no logging."""
