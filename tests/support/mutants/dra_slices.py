"""DRA drivers that publish slices incorrectly. See `faulty_dra_driver`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import TaskStatus

from devlet.errors import DevletError, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES
from devlet.sdk.values import Claim, Pool, Prepared
from tests.support.mutants.sound_dra_driver import SoundDraDriver

__all__ = ["BUGS", "PublishesOnce"]

Driver = SoundDraDriver


class Silent(Driver):
    """Publish no slices."""

    async def publishing(self, *, task_status: TaskStatus[None]) -> None:
        task_status.started()


class PublishesOnce(Driver):
    """Publish a slice once and never restore it."""

    generation = 1

    async def publishing(self, *, task_status: TaskStatus[None]) -> None:
        self.node_uid = (await self.cluster.get(NODES, self.node))["metadata"]["uid"]
        self.health_service.show(self.reports())
        await self.write()
        task_status.started()
        seen = self.count()
        while True:
            await anyio.sleep(0.05)
            if (count := self.count()) != seen:
                seen = count
                await self.changed()

    async def write(self) -> None:
        await self.create(self.slice())

    async def changed(self) -> None: ...

    async def create(self, document: Document) -> Document:
        return await self.cluster.create(RESOURCE_SLICES, document)

    def slice(self, **spec: Any) -> Document:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": self.node_uid, "controller": True}
        return {
            "metadata": {"generateName": f"{self.node}-led-", "ownerReferences": [owner]},
            "spec": {
                "driver": self.name,
                "nodeName": self.node,
                "pool": self.pool(1),
                "devices": [{"name": f"led-{number}"} for number in range(self.count())],
                **spec,
            },
        }

    def pool(self, count: int, generation: int | None = None) -> Document:
        return {"name": self.node, "generation": generation or self.generation, "resourceSliceCount": count}


class ForOthers(PublishesOnce):
    """Publish a slice of another driver as well."""

    async def write(self) -> None:
        await super().write()
        await self.create(self.slice(driver="other.example.com"))


class OnAnotherNode(PublishesOnce):
    """Publish the slice of another node."""

    async def write(self) -> None:
        await self.create(self.slice(nodeName="other-node"))


class OwnedByNobody(PublishesOnce):
    """Publish a slice without an owner."""

    async def write(self) -> None:
        document = self.slice()
        del document["metadata"]["ownerReferences"]
        await self.create(document)


class Incomplete(PublishesOnce):
    """Publish only one of the two slices of a pool."""

    async def write(self) -> None:
        await self.create(self.slice(pool=self.pool(2)))


class KeepsOldOnes(PublishesOnce):
    """Leave a slice of an older generation behind."""

    async def write(self) -> None:
        await self.create(self.slice())
        await self.create(self.slice(pool=self.pool(1, 2)))


class Duplicates(PublishesOnce):
    """Publish the same devices in two slices."""

    async def write(self) -> None:
        for _ in range(2):
            await self.create(self.slice(pool=self.pool(2)))


class TooMany(PublishesOnce):
    """Publish more devices in a slice than the API allows."""

    async def write(self) -> None:
        await super().write()
        with suppress(DevletError):
            await self.create(self.slice(devices=[{"name": f"led-{number}"} for number in range(129)]))


class Restless(PublishesOnce):
    """Update its slice all the time."""

    async def write(self) -> None:
        self.written = await self.create(self.slice())

    def count(self) -> int:  # is asked all the time
        return int(anyio.current_time() * 10) % 2 + 10

    async def changed(self) -> None:
        self.written["spec"]["devices"] = self.slice()["spec"]["devices"]
        self.written = await self.cluster.update(RESOURCE_SLICES, self.written)


class Jealous(Driver):
    """Delete the slices of the same driver on other nodes."""

    async def publishing(self, *, task_status: TaskStatus[None]) -> None:
        for each in (await self.cluster.list(RESOURCE_SLICES)).items:
            if each["spec"]["driver"] == self.name and each["spec"]["nodeName"] != self.node:
                await self.cluster.delete(RESOURCE_SLICES, each["metadata"]["name"])
        await super().publishing(task_status=task_status)


class OneNameForAll(PublishesOnce):
    """Use a slice name that is the same on all nodes."""

    async def write(self) -> None:
        document = self.slice()
        document["metadata"] = {"name": "leds", "ownerReferences": document["metadata"]["ownerReferences"]}
        await self.create(document)


class NeverChanges(Driver):
    """Never publish a change of its devices."""

    async def changes(self) -> AsyncIterator[Mapping[str, Pool]]:
        yield self.pools()
        await anyio.sleep_forever()


class ChangesByHalf(PublishesOnce):
    """Publish only half of a pool after a change."""

    async def changed(self) -> None:
        await self.create(self.slice(pool=self.pool(2, 2)))


class StartsOver(PublishesOnce):
    """Publish a lower generation after a change."""

    generation = 5

    async def changed(self) -> None:
        [old] = (await self.cluster.list(RESOURCE_SLICES)).items
        await self.cluster.delete(RESOURCE_SLICES, old["metadata"]["name"])
        await self.create(self.slice(pool=self.pool(1, 1)))


class ChangesOneByOne(PublishesOnce):
    """Update two slices without raising the generation."""

    async def write(self) -> None:
        for half in self.halves():
            await self.create(self.slice(pool=self.pool(2), devices=half))

    async def changed(self) -> None:
        found = (await self.cluster.list(RESOURCE_SLICES)).items
        for each, half in zip(found, self.halves(), strict=True):
            each["spec"]["devices"] = half
            await self.cluster.update(RESOURCE_SLICES, each)

    def halves(self) -> list[list[Document]]:
        return [[{"name": f"{side}-{number}"} for number in range(self.count())] for side in ("left", "right")]


class CountsInMemory(PublishesOnce):
    """Start its changes with generation 2 again after a restart."""

    async def write(self) -> None:
        if not (await self.cluster.list(RESOURCE_SLICES)).items:
            await super().write()

    async def changed(self) -> None:
        self.generation += 1
        [old] = (await self.cluster.list(RESOURCE_SLICES)).items
        await self.cluster.update(RESOURCE_SLICES, {**old, "spec": self.slice()["spec"]})


class KnowsTheFirst(Driver):
    """Publish new devices, but prepare only those known at its start."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.known = {device.name for pool in self.pools().values() for device in pool.devices}

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        if unknown := {result.device for result in claim.results} - self.known:
            raise NotFound(f"no such device: {', '.join(unknown)}")
        return await super().prepare(claim)


BUGS: dict[str, type[Driver]] = {
    "DRA-SLICE-1": Silent,
    "DRA-SLICE-2": ForOthers,
    "DRA-SLICE-3": OnAnotherNode,
    "DRA-SLICE-4": OwnedByNobody,
    "DRA-SLICE-5": Incomplete,
    "DRA-SLICE-6": KeepsOldOnes,
    "DRA-SLICE-7": Duplicates,
    "DRA-SLICE-8": TooMany,
    "DRA-SLICE-9": Restless,
    "DRA-SLICE-10": PublishesOnce,
    "DRA-SLICE-11": Jealous,
    "DRA-SLICE-12": OneNameForAll,
    "DRA-CHANGE-1": NeverChanges,
    "DRA-CHANGE-2": ChangesByHalf,
    "DRA-CHANGE-3": StartsOver,
    "DRA-CHANGE-5": ChangesOneByOne,
    "DRA-CHANGE-6": CountsInMemory,
    "DRA-CHANGE-7": KnowsTheFirst,
}
