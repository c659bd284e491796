"""A second opinion on allocations: a checker, a brute-force search, and problems in few words."""
