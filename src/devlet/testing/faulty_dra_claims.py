"""DRA drivers that prepare and unprepare claims in a wrong way. See `faulty_dra_driver`."""

import threading
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import msgspec

from devlet.cluster.client import Cluster
from devlet.errors import InUse, InvalidInput, NotFound, Unavailable
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.claim import DeviceResult
from devlet.sdk.server import Context, Methods, Unary
from devlet.sdk.values import Claim, ClaimRef, Prepared
from devlet.testing.sound_dra_driver import PREPARE, UNPREPARE, Parameters, SoundDraDriver
from devlet.wire.dra_v1 import api_pb2 as pb

__all__ = ["BUGS", "NO_REFUSALS"]

Driver = SoundDraDriver


class Broken(Driver):
    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        raise Unavailable("no light today")


class _Answers(Driver):
    """Changes devices that are answered with."""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        if method == PREPARE:
            for answer in response.claims.values():
                for device in answer.devices:
                    self.change(device, package)

    def change(self, device: Any, package: str) -> None:
        raise NotImplementedError


class OtherPool(_Answers):
    def change(self, device: Any, package: str) -> None:
        device.pool_name = self.name


class OtherRequest(_Answers):
    def change(self, device: Any, package: str) -> None:
        device.request_names[:] = ["led"]


class WithAlternative(_Answers):
    def change(self, device: Any, package: str) -> None:
        device.request_names[:] = [f"{name}/sub" for name in device.request_names]


class Endless(_Answers):
    def change(self, device: Any, package: str) -> None:
        device.cdi_device_ids.append("x" * (5 << 20))


class ForgetsShares(_Answers):
    def change(self, device: Any, package: str) -> None:
        device.ClearField("share_id") if package == "v1" else None


class LessInOldVersion(_Answers):
    def change(self, device: Any, package: str) -> None:
        if package == "v1beta1":
            device.ClearField("cdi_device_ids")


class OnlyOnce(Driver):
    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        if claim.uid in await self.log.entries():
            raise InUse(f"claim {claim.ref.name} is prepared already")
        return await super().prepare(claim)


class _Credulous(Driver):
    """Takes this error for a success."""

    error = ""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for answer in response.claims.values():
            if self.error in answer.error:
                answer.error = ""


class BelievesInClaims(_Credulous):
    error = "does not exist"


class BelievesInUids(_Credulous):
    error = "got replaced"


class BelievesInSchedulers(_Credulous):
    error = "is not allocated"


class TakesAll(Driver):
    """Answers for the devices of other drivers, too."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.foreign = [each for each in claim.object.results if each.driver != self.name]
        return await super().prepare(claim)

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for answer in response.claims.values() if method == PREPARE else ():
            answer.devices.extend(pb.Device(pool_name=each.pool, device_name=each.device) for each in self.foreign)


class ReadsEveryParameter(Driver):
    def parameters(self, claim: Claim, result: DeviceResult) -> Parameters:
        allocation = claim.object.status.allocation
        for each in allocation.devices.config if allocation else ():
            if each.opaque is not None and not msgspec.convert(each.opaque.parameters, dict).keys() <= {"color"}:
                raise InvalidInput(f"unknown parameters {each.opaque.parameters}")
        return super().parameters(claim, result)


class ReadsNoParameter(Driver):
    def parameters(self, claim: Claim, result: DeviceResult) -> Parameters:
        return Parameters()


class RefusesParameters(Driver):
    def parameters(self, claim: Claim, result: DeviceResult) -> Parameters:
        if claim.configs_for(result):
            raise InvalidInput("there is nothing to configure")
        return Parameters()


class GivesTwice(Driver):
    async def check_free(self, claim: Claim) -> None: ...


class SharesNothing(Driver):
    """Takes each share for the whole device."""

    async def check_free(self, claim: Claim) -> None:
        wanted = {f"{result.pool}/{result.device}" for result in claim.results}
        for uid, entry in (await self.log.entries()).items():
            if uid != claim.uid and wanted & {key.rpartition("/")[0] for key in entry.detail}:
                raise InUse(f"claim {entry.claim.name} has a device of {', '.join(sorted(wanted))}")


class FileByName(Driver):
    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        (self.data / f"{claim.ref.namespace}_{claim.ref.name}").write_text(claim.uid)
        return await super().prepare(claim)


class RemembersNames(Driver):
    """Takes claims of one name for the same."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cache: dict[str, Any] = {}

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for each in request.claims if method == PREPARE else ():
            if each.uid in response.claims and not response.claims[each.uid].error:
                known = self.cache.setdefault(self.key(each), list(response.claims[each.uid].devices))
                del response.claims[each.uid].devices[:]
                response.claims[each.uid].devices.extend(known)

    def key(self, claim: Any) -> str:
        return str(claim.name)


class RemembersFullNames(RemembersNames):
    def key(self, claim: Any) -> str:
        return f"{claim.namespace}/{claim.name}"


class SilentInstead(Driver):
    """Where it should refuse a claim, it does not answer at all."""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        if any(answer.error for answer in response.claims.values()):
            await anyio.sleep_forever()


class GarbledInstead(Driver):
    """Where it should refuse a claim, it answers what nobody can read."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        self.refused = False
        answer = await super().called(path, unary, blob, context)
        return b"\xff" * 16 if self.refused else answer

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        self.refused = any(answer.error for answer in response.claims.values())


# Batches


class _Skips(Driver):
    method = ""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        if method == self.method and len(request.claims) > 1:
            del response.claims[request.claims[-1].uid]


class SkipsPrepare(_Skips):
    method = PREPARE


class SkipsUnprepare(_Skips):
    method = UNPREPARE


class _Looks(Driver):
    """At the claims of a call."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        if path.endswith((f"/{PREPARE}", f"/{UNPREPARE}")):
            self.check([each.uid for each in pb.NodePrepareResourcesRequest.FromString(blob).claims])
        return await super().called(path, unary, blob, context)

    def check(self, uids: Sequence[str]) -> None:
        raise NotImplementedError


class NotForNothing(_Looks):
    def check(self, uids: Sequence[str]) -> None:
        if not uids:
            raise InvalidInput("no claims")


class NotTwice(_Looks):
    def check(self, uids: Sequence[str]) -> None:
        if len(set(uids)) < len(uids):
            raise InvalidInput("the same claim twice")


class Unforgiving(Driver):
    """A claim that was in one call with a bad one never succeeds."""

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
    """Has one place for the claim that it is dealing with, and no turns."""

    def turns(self) -> AbstractAsyncContextManager[object] | None:
        return None

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.current = claim
        await anyio.sleep(0.5)
        return await super().prepare(self.current)


class UnpreparesLater(Driver):
    """What is to be unprepared goes some time later, whatever has become of it."""

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
    """Where the first claim of a call is not known, there is nothing to do."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        claims = pb.NodeUnprepareResourcesRequest.FromString(blob).claims if path.endswith(f"/{UNPREPARE}") else []
        if len(claims) > 1 and claims[0].uid not in await self.log.entries():
            done = {each.uid: pb.NodeUnprepareResourceResponse() for each in claims}
            return pb.NodeUnprepareResourcesResponse(claims=done).SerializeToString()
        return await super().called(path, unary, blob, context)


# Unprepare


class NeverEnds(Driver):
    async def unprepare(self, claim: ClaimRef) -> None:
        raise Unavailable("the light is still on")


class EndsOnce(Driver):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ended: set[str] = set()

    async def unprepare(self, claim: ClaimRef) -> None:
        if claim.uid in self.ended:
            raise NotFound(f"claim {claim.name} is not prepared any more")
        self.ended.add(claim.uid)
        await super().unprepare(claim)


class KnowsItsClaims(Driver):
    async def unprepare(self, claim: ClaimRef) -> None:
        if claim.uid not in await self.log.entries():
            raise NotFound(f"claim {claim.name} is not prepared")
        await super().unprepare(claim)


class AsksTheApi(Driver):
    async def unprepare(self, claim: ClaimRef) -> None:
        await self.cluster.get(RESOURCE_CLAIMS, claim.name, claim.namespace)
        await super().unprepare(claim)


class Buries(EndsOnce):
    """What was unprepared is over for good."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        if claim.uid in self.ended:
            raise InUse(f"claim {claim.ref.name} has been used")
        return await super().prepare(claim)

    async def unprepare(self, claim: ClaimRef) -> None:
        self.ended.add(claim.uid)
        await Driver.unprepare(self, claim)


class GivesNothingBack(Driver):
    async def unprepare(self, claim: ClaimRef) -> None: ...


class OldServiceByHalf(Driver):
    """v1beta1 is for what pods wait for."""

    def dra(self, cluster: Cluster) -> list[Methods]:
        def is_there(path: str) -> bool:
            return not ("v1beta1" in path and path.endswith(f"/{UNPREPARE}"))

        return [
            Methods({path: unary for path, unary in each.unary.items() if is_there(path)}, each.streams)
            for each in super().dra(cluster)
        ]


class EndsAll(Driver):
    async def unprepare(self, claim: ClaimRef) -> None:
        await super().unprepare(claim)
        for uid in self.cdi_files.leftovers():
            self.cdi_files.remove(uid)


BUGS: dict[str, type[Driver]] = {
    "DRA-PREP-1": Broken,
    "DRA-PREP-2": OtherPool,
    "DRA-PREP-3": OtherRequest,
    "DRA-PREP-4": WithAlternative,
    "DRA-PREP-5": OnlyOnce,
    "DRA-PREP-6": BelievesInClaims,
    "DRA-PREP-7": BelievesInUids,
    "DRA-PREP-8": BelievesInSchedulers,
    "DRA-PREP-9": TakesAll,
    "DRA-PREP-10": ReadsEveryParameter,
    "DRA-PREP-11": ReadsNoParameter,
    "DRA-PREP-12": RefusesParameters,
    "DRA-PREP-13": GivesTwice,
    "DRA-PREP-14": ForgetsShares,
    "DRA-PREP-15": LessInOldVersion,
    "DRA-PREP-16": FileByName,
    "DRA-PREP-17": RemembersNames,
    "DRA-PREP-18": RemembersFullNames,
    "DRA-PREP-19": Endless,
    "DRA-PREP-20": SharesNothing,
    "DRA-BATCH-1": SkipsPrepare,
    "DRA-BATCH-2": SkipsUnprepare,
    "DRA-BATCH-3": NotForNothing,
    "DRA-BATCH-4": NotTwice,
    "DRA-BATCH-5": Unforgiving,
    "DRA-BATCH-6": MixesUp,
    "DRA-BATCH-7": UnpreparesLater,
    "DRA-BATCH-8": EndsWhatIsFirst,
    "DRA-UNPREP-1": NeverEnds,
    "DRA-UNPREP-3": EndsOnce,
    "DRA-UNPREP-4": KnowsItsClaims,
    "DRA-UNPREP-5": AsksTheApi,
    "DRA-UNPREP-6": Buries,
    "DRA-UNPREP-7": GivesNothingBack,
    "DRA-UNPREP-8": EndsAll,
    "DRA-UNPREP-9": OldServiceByHalf,
}

NO_REFUSALS: dict[str, type[Driver]] = {"silent": SilentInstead, "garbled": GarbledInstead}
"""For all checks of what has to be refused."""
