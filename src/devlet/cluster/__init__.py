"""The cluster's objects as we read and write them. `client` is the port; `store` keeps the objects on this host."""
