"""Selectors of objects by label and by field, and of nodes."""
