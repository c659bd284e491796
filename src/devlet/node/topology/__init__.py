"""The NUMA nodes from which a container's resources come. Pure, except for `machine`, which reads sysfs."""
