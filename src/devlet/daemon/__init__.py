"""Configuration, and the one place where the parts are put together."""
