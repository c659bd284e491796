"""DRA drivers that handle calls with several claims, or concurrent calls, incorrectly. See `faulty_dra_driver`."""

import threading
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from devlet.errors import InvalidInput
from devlet.sdk.server import Context, Unary
from devlet.sdk.values import Claim, Prepared
from devlet.wire.dra_v1 import api_pb2 as pb
from tests.support.mutants.sound_dra_driver import PREPARE, UNPREPARE, SoundDraDriver

__all__ = ["BUGS"]

Driver = SoundDraDriver


class _Skips(Driver):
    """Leave out the last claim in the response to `method`."""

    method = ""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        if method == self.method and len(request.claims) > 1:
            del response.claims[request.claims[-1].uid]


class SkipsPrepare(_Skips):
    """Leave out a claim in the response to NodePrepareResources."""

    method = PREPARE


class SkipsUnprepare(_Skips):
    """Leave out a claim in the response to NodeUnprepareResources."""

    method = UNPREPARE


class _Looks(Driver):
    """Check the claims of a call before it is handled."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        if path.endswith((f"/{PREPARE}", f"/{UNPREPARE}")):
            self.check([each.uid for each in pb.NodePrepareResourcesRequest.FromString(blob).claims])
        return await super().called(path, unary, blob, context)

    def check(self, uids: Sequence[str]) -> None:
        raise NotImplementedError


class NotForNothing(_Looks):
    """Reject calls without claims."""

    def check(self, uids: Sequence[str]) -> None:
        if not uids:
            raise InvalidInput("no claims")


class NotTwice(_Looks):
    """Reject calls that list a claim twice."""

    def check(self, uids: Sequence[str]) -> None:
        if len(set(uids)) < len(uids):
            raise InvalidInput("the same claim twice")


class Unforgiving(Driver):
    """Never prepare a claim that was in a call with a bad one."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.spoilt: set[str] = set()

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        if any(answer.error for answer in response.claims.values()):
            self.spoilt |= {each.uid for each in request.claims}
            return
        for uid, answer in response.claims.items() if method == PREPARE else ():
            if uid in self.spoilt:
                answer.error = "its batch was rolled back"


class MixesUp(Driver):
    """Keep the current claim of all concurrent calls in one place."""

    def turns(self) -> AbstractAsyncContextManager[object] | None:
        return None

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.current = claim
        await anyio.sleep(0.5)
        return await super().prepare(self.current)


class UnpreparesLater(Driver):
    """Unprepare some time later, even if the claim was prepared again."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.doomed: set[str] = set()

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for each in request.claims:
            if method == UNPREPARE:
                self.doomed.add(each.uid)
            elif each.uid in self.doomed:
                # the file alone: what is being written for the next call stays
                threading.Timer(0.05, self.cdi_files.path(each.uid).unlink, [True]).start()


class EndsWhatIsFirst(Driver):
    """Unprepare nothing if the first claim of a call is unknown."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        claims = pb.NodeUnprepareResourcesRequest.FromString(blob).claims if path.endswith(f"/{UNPREPARE}") else []
        if len(claims) > 1 and claims[0].uid not in await self.log.entries():
            done = {each.uid: pb.NodeUnprepareResourceResponse() for each in claims}
            return pb.NodeUnprepareResourcesResponse(claims=done).SerializeToString()
        return await super().called(path, unary, blob, context)


# Unprepare


BUGS: dict[str, type[Driver]] = {
    "DRA-BATCH-1": SkipsPrepare,
    "DRA-BATCH-2": SkipsUnprepare,
    "DRA-BATCH-3": NotForNothing,
    "DRA-BATCH-4": NotTwice,
    "DRA-BATCH-5": Unforgiving,
    "DRA-BATCH-6": MixesUp,
    "DRA-BATCH-7": UnpreparesLater,
    "DRA-BATCH-8": EndsWhatIsFirst,
}
