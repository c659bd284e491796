"""PodResources, v1."""
