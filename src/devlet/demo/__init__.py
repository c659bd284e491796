"""The tour: what devlet does, shown on this machine in one go."""
