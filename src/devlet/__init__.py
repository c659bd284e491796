"""The device half of a kubelet, standing on its own. See docs/architecture.md for the rooms and their rules."""
