"""Cassettes: files with what the drivers of a node publish, to be played on machines without that hardware.

`cassette` has the values and `cassette_file` reads and writes them. `recording` creates a cassette from what a node
shows, `drift` compares two, `player` serves one as virtual drivers, and `library` finds those that devlet ships."""
