"""The command line: a module per verb, which parses, calls and prints. Verbs are imported lazily to start fast."""
