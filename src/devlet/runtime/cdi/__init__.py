"""The Container Device Interface: files that say what a container gets with a device, and what its OCI spec becomes.

Reading and resolving is one thing, applying another; only `spec_dir` and `host_nodes` look at the file system."""
