"""Registration of plugins by their socket in the registry directory."""
