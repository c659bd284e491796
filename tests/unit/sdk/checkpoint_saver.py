"""Saves a checkpoint in a loop until it is killed, and says after each which one it was. Run by test_checkpoint.py."""

import os
import sys
from pathlib import Path

from devlet.sdk.checkpoint import Checkpoint

checkpoint = Checkpoint(Path(sys.argv[1]), list[int], kind="numbers")
for number in range(int(sys.argv[2]), 1_000_000):
    checkpoint.save([number] * (number % 500))
    os.write(1, f"{number}\n".encode())
