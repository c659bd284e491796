"""Why claims fit on a node or not. Pure, and made of the same parts as the search: it cannot disagree with it."""
