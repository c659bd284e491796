"""The demo: a node with two drivers whose pods get, share and wait for devices, on this machine and live."""
