"""DRA drivers that crash, leak, cannot be restarted, or cannot run in two instances. See `faulty_dra_driver`."""

import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from devlet.cluster.client import Cluster
from devlet.errors import InUse, InvalidInput
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sdk.cdi_files import CdiFiles
from devlet.sdk.claim_log import ClaimLog, Entry
from devlet.sdk.exclusion import Exclusion
from devlet.sdk.server import Context, Methods, SocketServer, Unary
from devlet.sdk.values import Claim, Prepared
from tests.support.mutants.dra_files import ForgetfulFiles
from tests.support.mutants.dra_health import CountsStreams
from tests.support.mutants.dra_slices import PublishesOnce
from tests.support.mutants.sound_dra_driver import PREPARE, UNPREPARE, SoundDraDriver

__all__ = ["BUGS"]

Driver = SoundDraDriver


# Calls


class _Cancelled(Driver):
    """Call `cancelled` when a prepare call is cancelled."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        try:
            if path.endswith(f"/{PREPARE}"):
                await anyio.sleep(0.2)
        except anyio.get_cancelled_exc_class():
            self.cancelled()
            raise
        return await super().called(path, unary, blob, context)

    def cancelled(self) -> None:
        raise NotImplementedError


class StuckOnCancel(_Cancelled):
    """Never answer again after a cancelled call."""

    stuck = False

    def cancelled(self) -> None:
        self.stuck = True

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        if self.stuck:
            await anyio.sleep_forever()
        return await super().called(path, unary, blob, context)


class DiesOfHangups(_Cancelled):
    """Exit when a call is cancelled."""

    def cancelled(self) -> None:
        os._exit(3)


class TakesGarbage(Driver):
    """Report success for requests that cannot be decoded."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        try:
            return await super().called(path, unary, blob, context)
        except InvalidInput:
            return b""


class TakesAnyMethod(Driver):
    """Implement a method that does not exist."""

    def dra(self, cluster: Cluster) -> list[Methods]:
        async def answer(blob: bytes, context: Context) -> bytes:
            return b""

        return [*super().dra(cluster), Methods({"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NoSuchMethod": answer})]


class OtherFields(Driver):
    """Return a field that the API does not have."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        answer = await super().called(path, unary, blob, context)
        return answer + b"\x78\x01" if path.endswith(f"/{PREPARE}") else answer  # field 15


class Leaks(Driver):
    """Leak a file descriptor for each claim."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        os.open("/dev/null", os.O_RDONLY)
        return await super().prepare(claim)


class FloodsLog(Driver):
    """Write to the log without pause."""

    async def live(self, stack: AsyncExitStack) -> None:
        threading.Thread(target=self._flood, daemon=True).start()
        await super().live(stack)

    def _flood(self) -> None:
        while True:
            sys.stderr.write("still alive\n" * 10_000)
            threading.Event().wait(0.01)


# Killed and started again


class MindsItsSocket(Driver):
    """Refuse to start if its socket exists."""

    async def live(self, stack: AsyncExitStack) -> None:
        if self.service_path.exists():
            sys.exit(f"{self.service_path} exists")
        await super().live(stack)


class NumbersItsLives(PublishesOnce):
    """Publish a new generation at every start."""

    async def write(self) -> None:
        for each in (await self.cluster.list(RESOURCE_SLICES)).items:
            self.generation = each["spec"]["pool"]["generation"] + 1
            await self.cluster.delete(RESOURCE_SLICES, each["metadata"]["name"])
        await super().write()


class TidiesUp(Driver):
    """Remove the CDI files of prepared claims when it starts."""

    async def live(self, stack: AsyncExitStack) -> None:
        for uid in self.cdi_files.leftovers():
            self.cdi_files.remove(uid)
        await super().live(stack)


class _Marks(Driver):
    """Create a mark while it works, and never begin if the mark exists."""

    method = ""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        if not path.endswith(f"/{self.method}"):
            return await super().called(path, unary, blob, context)
        mark = self.data / "at-work"
        if mark.exists():
            raise InUse("somebody is at work")
        mark.touch()
        try:
            await anyio.sleep(1.0)
            return await super().called(path, unary, blob, context)
        finally:
            self.unmark(mark)

    def unmark(self, mark: Path) -> None:
        mark.unlink()


class MarksPrepare(_Marks):
    """Never prepare again after it was killed during prepare."""

    method = PREPARE


class MarksUnprepare(_Marks):
    """Never unprepare again after it was killed during unprepare."""

    method = UNPREPARE


class MarksUntilDone(_Marks):
    """Never prepare again after it was stopped during prepare."""

    method = PREPARE
    stopping = False

    async def asked_to_stop(self) -> None:
        self.stopping = True

    def unmark(self, mark: Path) -> None:
        if not self.stopping:
            mark.unlink()


class EndsInMind(Driver):
    """Forget at a restart which claims were unprepared."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.log = self.mind = _Unwritten(self.data / "claims.json", dict[str, int])

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.mind.ended.discard(claim.uid)
        return await super().prepare(claim)


class _Unwritten(ClaimLog[dict[str, int]]):
    """Remove unprepared claims from memory only, not from the file."""

    def __init__(self, path: Path, detail: type[dict[str, int]]) -> None:
        super().__init__(path, detail)
        self.ended: set[str] = set()

    async def entries(self) -> dict[str, Entry[dict[str, int]]]:
        return {uid: entry for uid, entry in (await super().entries()).items() if uid not in self.ended}

    @asynccontextmanager
    async def unpreparing(self, uid: str) -> AsyncIterator[Entry[dict[str, int]] | None]:
        yield None
        self.ended.add(uid)


# Asked to end


class Deaf(Driver):
    """Ignore SIGTERM."""

    async def asked_to_stop(self) -> None:
        await anyio.sleep_forever()


class LeavesInAHurry(Driver):
    """Leave its sockets behind when it exits."""

    async def asked_to_stop(self) -> None:
        os._exit(0)


class WaitsForListeners(CountsStreams):
    """Exit only after all health streams have ended."""

    async def asked_to_stop(self) -> None:
        while self.streams:  # noqa: ASYNC110  that is the bug
            await anyio.sleep(0.05)


class StartsOnce(Driver):
    """Refuse to start again after it was stopped."""

    async def live(self, stack: AsyncExitStack) -> None:
        lock = self.root / "running"
        if lock.exists():
            sys.exit("it runs already")
        lock.touch()
        await super().live(stack)


class TakesAllWithIt(Driver):
    """Remove the CDI files of prepared claims when it exits."""

    async def asked_to_stop(self) -> None:
        for uid in self.cdi_files.leftovers():
            self.cdi_files.remove(uid)


class Unpublishes(Driver):
    """Delete its slices when it exits."""

    async def asked_to_stop(self) -> None:
        for each in (await self.cluster.list(RESOURCE_SLICES)).items:
            await self.cluster.delete(RESOURCE_SLICES, each["metadata"]["name"])


# Two of them


class Single(Driver):
    """Ignore the name of its instance, so that only one can run."""

    def __init__(self, root: Path, cdi: Path, api: Path, node: str, instance: str = "") -> None:
        super().__init__(root, cdi, api, node)


class KnowsOnlyItself(Driver):
    """Fail if another instance has written a file."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.files = self.cdi_files = ForgetfulFiles(self.cdi, self.name)

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        if self.files.path(claim.uid).exists() and claim.uid not in self.files.known:
            raise InUse(f"{self.files.path(claim.uid)} exists")
        return await super().prepare(claim)


class SignsItsSlices(PublishesOnce):
    """Overwrite the slices of the other instance."""

    async def write(self) -> None:
        found = (await self.cluster.list(RESOURCE_SLICES)).items
        for each in found or [await self.create(self.slice())]:
            for device in each["spec"]["devices"]:
                device["attributes"] = {"instance": {"string": self.instance}}
            await self.cluster.update(RESOURCE_SLICES, each)


class EndsAll(Driver):
    """Remove the sockets of all instances when it exits."""

    async def serve(self, stack: AsyncExitStack, path: Path, methods: Sequence[Methods]) -> None:
        await stack.enter_async_context(SocketServer(path, methods, self.limits).serving())

    async def asked_to_stop(self) -> None:
        for path in [*self.registry_path.parent.iterdir(), *self.data.glob("*.sock")]:
            path.unlink()


class TakesNoTurns(Driver):
    """Update a shared list without locking it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.list = self.root / "list.json"
        self.cdi_files = _Listed(self.cdi, self.name)
        self.cdi_files.list = self.list

    def turns(self) -> AbstractAsyncContextManager[object] | None:
        return Exclusion(None)

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        known = json.loads(self.list.read_text()) if self.list.exists() else []
        await anyio.sleep(0.5)
        draft = self.list.with_suffix(f".{self.instance}")
        draft.write_text(json.dumps([*known, claim.uid]))
        draft.rename(self.list)
        result = claim.results
        return [self.given(number, each, "red") for number, each in enumerate(result)]


class _Listed(CdiFiles):
    """Remove only CDI files in a list that instances share."""

    list: Path

    def remove(self, uid: str) -> None:
        if self.list.exists() and uid in json.loads(self.list.read_text()):
            super().remove(uid)


BUGS: dict[str, type[Driver]] = {
    "DRA-CALL-1": StuckOnCancel,
    "DRA-CALL-2": DiesOfHangups,
    "DRA-CALL-3": TakesGarbage,
    "DRA-CALL-4": TakesAnyMethod,
    "DRA-CALL-5": OtherFields,
    "DRA-CALL-6": Leaks,
    "DRA-CALL-7": FloodsLog,
    "DRA-KILL-1": MindsItsSocket,
    "DRA-KILL-2": NumbersItsLives,
    "DRA-KILL-4": TidiesUp,
    "DRA-KILL-6": MarksPrepare,
    "DRA-KILL-7": MarksUnprepare,
    "DRA-KILL-8": EndsInMind,
    "DRA-STOP-1": Deaf,
    "DRA-STOP-2": LeavesInAHurry,
    "DRA-STOP-3": WaitsForListeners,
    "DRA-STOP-4": StartsOnce,
    "DRA-STOP-5": TakesAllWithIt,
    "DRA-STOP-6": Unpublishes,
    "DRA-STOP-7": MarksUntilDone,
    "DRA-TWO-1": Single,
    "DRA-TWO-2": KnowsOnlyItself,
    "DRA-TWO-3": SignsItsSlices,
    "DRA-TWO-4": EndsAll,
    "DRA-TWO-5": TakesNoTurns,
}
