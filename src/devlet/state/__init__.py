"""The state of a node that survives a restart, in the kubelet's file formats. Only `checkpoint_file` does I/O."""
