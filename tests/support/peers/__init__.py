"""Run foreign programs: Kubernetes' own, and well-known drivers, all unmodified."""
