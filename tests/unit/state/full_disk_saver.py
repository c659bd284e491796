"""Save a checkpoint on a small disk until it is full, free some space, and print the result as JSON. Run by
test_checkpoint_file.py on a tmpfs of its own."""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec

from devlet.errors import Unavailable
from devlet.kit.parts import running
from devlet.state.checkpoint_file import CheckpointFile, GroupSaver


async def main(root: Path) -> dict[str, Any]:
    file = CheckpointFile(root / "checkpoint")
    size = 100_000
    saver = GroupSaver(file, lambda: b"x" * size)
    ballast = root / "ballast"
    ballast.write_bytes(b"\0" * (1 << 20))
    acknowledged, problems = 0, []
    async with running(saver.run):
        for size in range(100_000, 4_000_000, 100_000):
            try:
                await saver.save()
            except Unavailable as e:
                problems.append(str(e))
                break
            acknowledged = size
        kept, names = len(file.read() or b""), sorted(os.listdir(root))
        ballast.unlink()
        size = acknowledged + 1
        await saver.save()
    return {
        "acknowledged": acknowledged,
        "problems": problems,
        "kept": kept,
        "names": names,
        "after": len(file.read() or b""),
    }


if __name__ == "__main__":
    os.write(1, msgspec.json.encode(anyio.run(main, Path(sys.argv[1]))))
