"""Descriptions and tables of objects, as lines. A view gets a document, and a reader for related objects."""
