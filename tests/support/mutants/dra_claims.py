"""DRA drivers that prepare claims incorrectly. See `faulty_dra_driver`."""

from collections.abc import Sequence
from typing import Any

import anyio
import msgspec

from devlet.errors import InUse, InvalidInput, Unavailable
from devlet.objects.types.claim import DeviceResult
from devlet.sdk.server import Context, Unary
from devlet.sdk.values import Claim, Prepared
from devlet.wire.dra_v1 import api_pb2 as pb
from tests.support.mutants.sound_dra_driver import PREPARE, Parameters, SoundDraDriver

__all__ = ["BUGS", "NO_REFUSALS"]

Driver = SoundDraDriver


class Broken(Driver):
    """Never prepare a claim."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        raise Unavailable("no light today")


class _Answers(Driver):
    """Change the devices in the response to NodePrepareResources."""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        if method == PREPARE:
            for answer in response.claims.values():
                for device in answer.devices:
                    self.change(device, package)

    def change(self, device: Any, package: str) -> None:
        raise NotImplementedError


class OtherPool(_Answers):
    """Return devices with the wrong pool name."""

    def change(self, device: Any, package: str) -> None:
        device.pool_name = self.name


class OtherRequest(_Answers):
    """Return devices with the wrong request name."""

    def change(self, device: Any, package: str) -> None:
        device.request_names[:] = ["led"]


class WithAlternative(_Answers):
    """Return request names with the name of an alternative."""

    def change(self, device: Any, package: str) -> None:
        device.request_names[:] = [f"{name}/sub" for name in device.request_names]


class Endless(_Answers):
    """Return a response of more than 4 MiB."""

    def change(self, device: Any, package: str) -> None:
        device.cdi_device_ids.append("x" * (5 << 20))


class ForgetsShares(_Answers):
    """Leave out share IDs in responses of v1."""

    def change(self, device: Any, package: str) -> None:
        device.ClearField("share_id") if package == "v1" else None


class LessInOldVersion(_Answers):
    """Leave out CDI devices in responses of v1beta1."""

    def change(self, device: Any, package: str) -> None:
        if package == "v1beta1":
            device.ClearField("cdi_device_ids")


class OnlyOnce(Driver):
    """Refuse to prepare a claim that is already prepared."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        if claim.uid in await self.log.entries():
            raise InUse(f"claim {claim.ref.name} is prepared already")
        return await super().prepare(claim)


class _Credulous(Driver):
    """Report success instead of the given error."""

    error = ""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for answer in response.claims.values():
            if self.error in answer.error:
                answer.error = ""


class BelievesInClaims(_Credulous):
    """Prepare claims that do not exist."""

    error = "does not exist"


class BelievesInUids(_Credulous):
    """Prepare claims whose UID does not match the API."""

    error = "got replaced"


class BelievesInSchedulers(_Credulous):
    """Prepare claims that are not allocated."""

    error = "is not allocated"


class TakesAll(Driver):
    """Return the devices of other drivers as well."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.foreign = [each for each in claim.object.results if each.driver != self.name]
        return await super().prepare(claim)

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for answer in response.claims.values() if method == PREPARE else ():
            answer.devices.extend(pb.Device(pool_name=each.pool, device_name=each.device) for each in self.foreign)


class ReadsEveryParameter(Driver):
    """Parse the parameters for other drivers as its own."""

    def parameters(self, claim: Claim, result: DeviceResult) -> Parameters:
        allocation = claim.object.status.allocation
        for each in allocation.devices.config if allocation else ():
            if each.opaque is not None and not msgspec.convert(each.opaque.parameters, dict).keys() <= {"color"}:
                raise InvalidInput(f"unknown parameters {each.opaque.parameters}")
        return super().parameters(claim, result)


class ReadsNoParameter(Driver):
    """Ignore all parameters, even invalid ones."""

    def parameters(self, claim: Claim, result: DeviceResult) -> Parameters:
        return Parameters()


class RefusesParameters(Driver):
    """Reject its own parameters."""

    def parameters(self, claim: Claim, result: DeviceResult) -> Parameters:
        if claim.configs_for(result):
            raise InvalidInput("there is nothing to configure")
        return Parameters()


class GivesTwice(Driver):
    """Prepare a device for two claims at the same time."""

    async def check_free(self, claim: Claim) -> None: ...


class SharesNothing(Driver):
    """Treat a share of a device as the whole device."""

    async def check_free(self, claim: Claim) -> None:
        wanted = {f"{result.pool}/{result.device}" for result in claim.results}
        for uid, entry in (await self.log.entries()).items():
            if uid != claim.uid and wanted & {key.rpartition("/")[0] for key in entry.detail}:
                raise InUse(f"claim {entry.claim.name} has a device of {', '.join(sorted(wanted))}")


class FileByName(Driver):
    """Name a file after the claim, whose name may be too long."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        (self.data / f"{claim.ref.namespace}_{claim.ref.name}").write_text(claim.uid)
        return await super().prepare(claim)


class RemembersNames(Driver):
    """Treat claims with the same name as the same claim."""

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
    """Treat claims with the same namespace and name as the same claim."""

    def key(self, claim: Any) -> str:
        return f"{claim.namespace}/{claim.name}"


class SilentInstead(Driver):
    """Never answer where it should refuse a claim."""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        if any(answer.error for answer in response.claims.values()):
            await anyio.sleep_forever()


class GarbledInstead(Driver):
    """Return an undecodable response where it should refuse a claim."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        self.refused = False
        answer = await super().called(path, unary, blob, context)
        return b"\xff" * 16 if self.refused else answer

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        self.refused = any(answer.error for answer in response.claims.values())


# Batches


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
}

NO_REFUSALS: dict[str, type[Driver]] = {"silent": SilentInstead, "garbled": GarbledInstead}
"""For all checks of what has to be refused."""
