"""The defaults of each kind. `objects.kind_rules` says which kind gets which of them."""
