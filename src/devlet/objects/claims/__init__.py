"""What follows from claims: their nodes, their overlaps, and how a template becomes a claim."""
