"""The length limit of unix socket paths. It counts bytes of the path as given to bind(), not characters."""

import os
from pathlib import Path

MAX_BYTES = 107  # sun_path of Linux has 108, the last one is a zero


def length(path: Path) -> int:
    return len(os.fsencode(path))
