"""Properties derived from a pod's spec: its claims, requests, quality of service, ports and tolerations."""
