"""The checks, by kind of driver."""
