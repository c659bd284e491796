"""What only devlet's own tests, benchmarks and tools need. It is not part of the wheel."""
