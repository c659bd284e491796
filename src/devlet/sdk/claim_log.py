"""A log of the claims that a driver prepared, or was preparing when it was killed, and of what it used for them.

    self.log = ClaimLog(directory / "claims.json", list[str])

    async def prepare(self, claim):
        leds = [result.device for result in claim.results]
        async with self.log.preparing(claim.ref, leds):         # written before anything is done
            await switch_on(leds)
        return [Prepared(result, env={"LED": result.device}) for result in claim.results]

    async def unprepare(self, ref):
        async with self.log.unpreparing(ref.uid) as entry:      # None: unknown, or done already
            if entry is not None:
                await switch_off(entry.detail)

If a block fails, or the process is killed in it, the entry stays `preparing` or `unpreparing`. The work may have been
done in part, so it must be idempotent. The node asks again in most cases; after a start, `unfinished` has the rest.
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
    """A claim in the log. `detail` is what the driver needs to undo the work."""

    claim: ClaimRef
    stage: Stage
    detail: T


class ClaimLog(Generic[T]):
    """`detail` is the type of an entry's detail. The file is read each time, because another instance may have written
    it. So use the log only while an `Exclusion` is held, as the SDK does around prepare and unprepare."""

    def __init__(self, path: Path, detail: type[T]) -> None:
        self._checkpoint = Checkpoint(path, dict[str, Entry[detail]], kind=KIND)  # type: ignore[valid-type]
        self._turn = anyio.Lock()

    async def entries(self) -> dict[str, Entry[T]]:
        """Return all entries by UID. Raise StateCorrupt as `Checkpoint.load` does."""
        async with self._turn:
            return await to_thread.run_sync(self._load)

    async def unfinished(self) -> dict[str, Entry[T]]:
        """Return the entries whose work failed, or was interrupted when the process was killed."""
        return {uid: entry for uid, entry in (await self.entries()).items() if entry.stage != Stage.PREPARED}

    @asynccontextmanager
    async def preparing(self, claim: ClaimRef, detail: T) -> AsyncIterator[Entry[T] | None]:
        """Log that the block prepares the claim; yield the previous entry, if any. If that one is prepared with the
        same detail already, nothing is written, and the block need not do anything."""
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
        """Log that the block undoes the work; yield the entry, or None if there is nothing to undo. The entry is
        removed after the block."""
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
        """Change the file. Once begun it is finished: a cancelled caller must not leave a writing thread behind."""
        with anyio.CancelScope(shield=True):
            async with self._turn:
                await to_thread.run_sync(lambda: self._checkpoint.save(change(self._load())))

    def _load(self) -> dict[str, Entry[T]]:
        return self._checkpoint.load() or {}
