"""Which claims a driver has prepared, or was preparing when it was killed, and with what.

    self.log = ClaimLog(directory / "claims.json", list[str])

    async def prepare(self, claim):
        leds = [result.device for result in claim.results]
        async with self.log.preparing(claim.ref, leds):         # written down before anything is done
            await switch_on(leds)
        return [Prepared(result, env={"LED": result.device}) for result in claim.results]

    async def unprepare(self, ref):
        async with self.log.unpreparing(ref.uid) as entry:      # None: never heard of, or done already
            if entry is not None:
                await switch_off(entry.detail)

A block that fails, and a process that is killed in it, leave the entry as it was on entering: `preparing` or
`unpreparing`. Both may have been done in part, so the acts must bear being repeated. The node asks again; what it never
asks for again is in `unfinished` after a start.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

import anyio
from anyio import to_thread
from msgspec import Struct, structs

from devlet.sdk.checkpoint import Checkpoint
from devlet.sdk.values import ClaimRef

__all__ = ["ClaimLog", "Entry", "Stage"]

T = TypeVar("T")

KIND = "ClaimLog"


class Stage(StrEnum):
    PREPARING = "preparing"
    PREPARED = "prepared"
    UNPREPARING = "unpreparing"


class Entry(Struct, Generic[T], frozen=True):
    """`detail` is whatever the driver needs to undo it."""

    claim: ClaimRef
    stage: Stage
    detail: T


class ClaimLog(Generic[T]):
    """`detail` is the type of an entry's detail. The file is read each time: another instance may have written it. So
    use it only while an `Exclusion` is held, as the SDK does around prepare and unprepare."""

    def __init__(self, path: Path, detail: type[T]) -> None:
        self._checkpoint = Checkpoint(path, dict[str, Entry[detail]], kind=KIND)  # type: ignore[valid-type]
        self._turn = anyio.Lock()

    async def entries(self) -> dict[str, Entry[T]]:
        """By UID. StateCorrupt if the file is damaged or somebody else's, as `Checkpoint.load` says."""
        async with self._turn:
            return await to_thread.run_sync(self._load)

    async def unfinished(self) -> dict[str, Entry[T]]:
        """Those that were under way when a process was killed, or failed."""
        return {uid: entry for uid, entry in (await self.entries()).items() if entry.stage != Stage.PREPARED}

    @asynccontextmanager
    async def preparing(self, claim: ClaimRef, detail: T) -> AsyncIterator[Entry[T] | None]:
        """For the act; yields the entry that was there before, if any. If that is prepared with the same detail
        already, nothing is written, and there is nothing to do unless the driver wants to be sure."""
        intent = Entry(claim, Stage.PREPARING, detail)
        done = structs.replace(intent, stage=Stage.PREPARED)
        before = (await self.entries()).get(claim.uid)
        if before != done:
            await self._change(lambda entries: entries | {claim.uid: intent})
        yield before
        if before != done:
            await self._change(lambda entries: entries | {claim.uid: done})

    @asynccontextmanager
    async def unpreparing(self, uid: str) -> AsyncIterator[Entry[T] | None]:
        """For undoing; yields the entry, or None if there is nothing to undo. It is forgotten after the block."""
        before = (await self.entries()).get(uid)
        if before is None:
            yield None
            return
        intent = structs.replace(before, stage=Stage.UNPREPARING)
        if before != intent:
            await self._change(lambda entries: entries | {uid: intent})
        yield before
        await self._change(lambda entries: {each: entry for each, entry in entries.items() if each != uid})

    async def _change(self, change: Callable[[dict[str, Entry[T]]], dict[str, Entry[T]]]) -> None:
        """Finished once it has begun: a cancelled caller must not leave a thread behind that writes."""
        with anyio.CancelScope(shield=True):
            async with self._turn:
                await to_thread.run_sync(lambda: self._checkpoint.save(change(self._load())))

    def _load(self) -> dict[str, Entry[T]]:
        return self._checkpoint.load() or {}
