"""The contract suite for foreign drivers."""
