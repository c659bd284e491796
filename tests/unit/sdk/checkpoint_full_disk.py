"""Saves a growing checkpoint on a small disk until it is full, and says what happened, as JSON. Run by
test_checkpoint.py on a tmpfs of its own."""

import os
import sys
from pathlib import Path

import msgspec

from devlet.errors import Unavailable
from devlet.sdk.checkpoint import Checkpoint

checkpoint = Checkpoint(Path(sys.argv[1]) / "state", str)
size, problem = 0, ""
while not problem:
    try:
        checkpoint.save("x" * (size + 50_000))
        size += 50_000
    except Unavailable as e:
        problem = str(e)
kept = len(checkpoint.load() or "")
os.write(1, msgspec.json.encode({"size": size, "problem": problem, "kept": kept, "names": os.listdir(sys.argv[1])}))
