"""Kubernetes objects as protobuf."""
