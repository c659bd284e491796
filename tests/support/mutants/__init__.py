"""Drivers and device plugins that keep the contract, and the same with one planted bug each."""
