"""PodResources, v1alpha1."""
