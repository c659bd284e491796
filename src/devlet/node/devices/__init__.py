"""The device manager: the devices of plugins, their allocation to pods, and what containers get with them."""
