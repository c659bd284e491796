"""Cassettes: one file with what the drivers of a node publish, to be played where there is no such hardware.

`cassette` has the values, `cassette_file` reads and writes, `recording` makes one from what a node shows, `drift`
compares two, `player` serves one as virtual drivers, `library` finds those that are shipped."""
