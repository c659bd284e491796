"""Which NUMA nodes a container's resources should come from. Pure but for `machine`, which reads what there is."""
