"""Helpers that know nothing of devices or Kubernetes. Anything here could serve another program."""
