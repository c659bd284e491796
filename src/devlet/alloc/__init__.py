"""Which devices satisfy which claims. Pure: no I/O, no clock, no logging; the same input gives the same answer."""
