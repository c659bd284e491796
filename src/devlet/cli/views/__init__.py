"""What people want to know of a kind of object, as lines. A view gets a document and a reader for what it refers to."""
