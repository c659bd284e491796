"""Values that objects hold: quantities, versions and times."""
