"""Fills a small disk through the store and says what happened, as JSON. Run by test_store.py on a tmpfs of its own."""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec

from devlet.cluster.store.store import Store, open_store
from devlet.errors import DevletError
from devlet.objects.kinds import CONFIG_MAPS

NAMESPACE = "default"


async def write(store: Store, name: str, size: int) -> str:
    """Empty if it was acknowledged, else the kind of error."""
    document = {"metadata": {"name": name}, "data": {"k": "x" * size}}
    try:
        await store.create(CONFIG_MAPS, document, NAMESPACE)
    except DevletError as e:
        return type(e).__name__
    return ""


async def fill(store: Store, acknowledged: list[str], errors: list[str]) -> None:
    """Several writers, until each of them was refused."""

    async def writer(number: int) -> None:
        for i in range(10_000):
            name = f"w{number}-{i}"
            if error := await write(store, name, 20_000):
                errors.append(error)
                return
            acknowledged.append(name)

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(writer, number)


async def stored(store: Store) -> set[str]:
    return {document["metadata"]["name"] for document in (await store.list(CONFIG_MAPS, NAMESPACE)).items}


async def main(root: Path) -> dict[str, Any]:
    ballast = root / "ballast"
    ballast.write_bytes(b"\0" * (1 << 20))
    acknowledged: list[str] = []
    errors: list[str] = []
    async with open_store(root / "cluster.db") as store:
        await fill(store, acknowledged, errors)
        readable = await stored(store)
        ballast.unlink()
        after = [await write(store, f"after-{i}", 1_000) for i in range(5)]
    async with open_store(root / "cluster.db") as store:
        survived = await stored(store)
    return {
        "acknowledged": acknowledged,
        "errors": errors,
        "readable": sorted(readable),
        "after": after,
        "survived": sorted(survived),
    }


if __name__ == "__main__":
    os.write(1, msgspec.json.encode(anyio.run(main, Path(sys.argv[1]))))
