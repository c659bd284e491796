"""The defaults of each kind. `objects.kind_rules` assigns them to kinds."""
