"""Bundled drivers, written with the SDK as a user would write them."""
