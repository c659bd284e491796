"""Everything that listens on a socket: translates between protocols and calls, and decides nothing itself."""
