"""The Container Device Interface: files that describe what a container gets with a device, applied to OCI specs.

Reading and resolving specs is separate from applying them. Only `spec_dir` and `host_nodes` access the file system.
"""
