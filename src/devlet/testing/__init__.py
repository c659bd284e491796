"""Fakes, fixtures and process runners that speak the real protocols; for users and for our own tests."""
