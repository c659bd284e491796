"""The daemon: configuration, and the assembly of all its parts."""
