"""Typed views of objects, for reading: one module per kind or group of kinds."""
