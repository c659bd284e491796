"""Random allocation problems."""
