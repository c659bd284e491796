"""One file per verb: parse, call, print. Imported lazily, because a command must start fast."""
