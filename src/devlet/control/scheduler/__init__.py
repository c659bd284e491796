"""Pods that wait get a node, and their claims devices. One owner for what is in flight."""
