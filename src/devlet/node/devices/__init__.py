"""The device manager: which devices there are, who holds them, and what a container gets with them."""
