"""Pods that files on this node ask for, without anybody in the cluster: read from a directory, shown as mirror pods."""
