"""Claims: the nodes where they can be used, overlapping allocations, and creation from a template."""
