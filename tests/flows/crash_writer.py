"""A process that writes to a store until it is killed, and says on stdout what it tries and what was acknowledged.

Run by test_store_crash.py. One JSON line per fact, each in a single write, so that a line is there or it is not.
"""

import os
import random
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec

from devlet.cluster.client import Cluster, EventType, MergePatch, WatchOptions
from devlet.cluster.store.store import open_store
from devlet.objects.kinds import CONFIG_MAPS

NAMESPACE = "default"


def say(**fact: Any) -> None:
    os.write(1, msgspec.json.encode(fact) + b"\n")


class Writer:
    """Owns a few keys and changes them in turn; nobody else touches them."""

    def __init__(self, number: int, round_: int, seed: int) -> None:
        self._random = random.Random(f"{seed}/{round_}/{number}")
        self._keys = [f"w{number}-{i}" for i in range(3)]
        self._prefix = f"{round_}.{number}"
        self._count = 0

    async def run(self, cluster: Cluster, alive: set[str]) -> None:
        while True:
            key = self._random.choice(self._keys)
            self._count += 1
            token = f"{self._prefix}.{self._count}"
            verb = "create" if key not in alive else self._random.choice(["update", "patch", "patch", "delete"])
            say(fact="try", verb=verb, key=key, token=token)
            version = await self._write(cluster, verb, key, token)
            (alive.discard if verb == "delete" else alive.add)(key)
            say(fact="ack", verb=verb, key=key, token=token, version=version)

    async def _write(self, cluster: Cluster, verb: str, key: str, token: str) -> int:
        document: dict[str, Any] = {"metadata": {"name": key, "namespace": NAMESPACE}, "data": {"token": token}}
        match verb:
            case "create":
                answer = await cluster.create(CONFIG_MAPS, document, NAMESPACE)
            case "update":
                answer = await cluster.update(CONFIG_MAPS, document)
            case "patch":
                answer = await cluster.patch(CONFIG_MAPS, key, MergePatch({"data": {"token": token}}), NAMESPACE)
            case _:
                await cluster.delete(CONFIG_MAPS, key, NAMESPACE)
                return 0
        return int(answer["metadata"]["resourceVersion"])


async def follow(cluster: Cluster, version: str) -> None:
    async with cluster.watch(CONFIG_MAPS, NAMESPACE, WatchOptions(resource_version=version)) as events:
        async for event in events:
            metadata, data = event.object["metadata"], event.object.get("data") or {}
            say(
                fact="event",
                gone=event.type is EventType.DELETED,
                key=metadata["name"],
                version=int(metadata["resourceVersion"]),
                token=data.get("token", ""),
            )


async def main(path: Path, round_: int, seed: int, writers: int, resume: str) -> None:
    async with open_store(path) as store:
        listed = await store.list(CONFIG_MAPS, NAMESPACE)
        objects = {d["metadata"]["name"]: (d["metadata"]["resourceVersion"], d["data"]["token"]) for d in listed.items}
        say(fact="list", version=int(listed.resource_version), objects=objects)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, store, resume or listed.resource_version)
            for number in range(writers):
                tasks.start_soon(Writer(number, round_, seed).run, store, set(objects))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
