"""The DRA services of a driver, v1 and v1beta1: they decode requests and encode the answers of the driver.

The two versions have the same messages, except that only v1 has shares of devices.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from types import ModuleType
from typing import Any

from google.protobuf.message import DecodeError

from devlet.errors import InvalidInput
from devlet.objects.types.claim import PreparedDevice
from devlet.sdk.server import Context, Methods, Unary
from devlet.sdk.values import ClaimRef
from devlet.wire.dra_v1 import api_pb2 as pb_v1
from devlet.wire.dra_v1beta1 import api_pb2 as pb_v1beta1

__all__ = ["DraService", "PrepareAnswer", "UnprepareAnswer", "dra_methods"]

ERROR_MAX = 4_096  # characters of the error of a claim

PrepareAnswer = Mapping[str, Sequence[PreparedDevice] | Exception]
UnprepareAnswer = Mapping[str, Exception | None]
Prepare = Callable[[Sequence[ClaimRef]], Awaitable[PrepareAnswer]]
Unprepare = Callable[[Sequence[ClaimRef]], Awaitable[UnprepareAnswer]]


class DraService(StrEnum):
    """A service, by the name under which it is advertised."""

    V1 = "v1.DRAPlugin"
    V1BETA1 = "v1beta1.DRAPlugin"


_MESSAGES: Mapping[DraService, ModuleType] = {DraService.V1: pb_v1, DraService.V1BETA1: pb_v1beta1}


def dra_methods(service: DraService, prepare: Prepare, unprepare: Unprepare) -> Methods:
    """Return the methods of a service. `prepare` and `unprepare` get each claim once, and answer for each by UID."""
    path = f"/k8s.io.kubelet.pkg.apis.dra.{service.value}"
    return Methods(
        {
            f"{path}/NodePrepareResources": _prepare(service, prepare),
            f"{path}/NodeUnprepareResources": _unprepare(service, unprepare),
        }
    )


def _prepare(service: DraService, prepare: Prepare) -> Unary:
    pb: Any = _MESSAGES[service]

    async def answer(blob: bytes, context: Context) -> bytes:
        answers = await prepare(_claims(pb.NodePrepareResourcesRequest, blob))
        claims = {uid: _prepared(pb, service, one) for uid, one in answers.items()}
        return bytes(pb.NodePrepareResourcesResponse(claims=claims).SerializeToString())

    return answer


def _unprepare(service: DraService, unprepare: Unprepare) -> Unary:
    pb: Any = _MESSAGES[service]

    async def answer(blob: bytes, context: Context) -> bytes:
        answers = await unprepare(_claims(pb.NodeUnprepareResourcesRequest, blob))
        claims = {uid: pb.NodeUnprepareResourceResponse(error=_text(error)) for uid, error in answers.items()}
        return bytes(pb.NodeUnprepareResourcesResponse(claims=claims).SerializeToString())

    return answer


def _claims(message: Any, blob: bytes) -> list[ClaimRef]:
    try:
        request = message.FromString(blob)
    except DecodeError as e:
        raise InvalidInput(f"the request cannot be decoded: {e}") from e
    refs = [ClaimRef(claim.namespace, claim.name, claim.uid) for claim in request.claims]
    for ref in refs:
        if not (ref.uid and ref.name and ref.namespace):
            raise InvalidInput(f"a claim needs namespace, name and UID, and {ref} does not have all of them")
    return list(dict.fromkeys(refs))


def _prepared(pb: Any, service: DraService, answer: Sequence[PreparedDevice] | Exception) -> Any:
    if isinstance(answer, Exception):
        return pb.NodePrepareResourceResponse(error=_text(answer))
    return pb.NodePrepareResourceResponse(devices=[_device(pb, service, each) for each in answer])


def _device(pb: Any, service: DraService, device: PreparedDevice) -> Any:
    message = pb.Device(
        request_names=[each.partition("/")[0] for each in device.requests or ()],
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=device.cdi_devices or (),
    )
    if service is DraService.V1 and device.share:
        message.share_id = device.share
    return message


def _text(error: Exception | None) -> str:
    """Return the text of an error. It is never empty, which would mean success. File names in it may not be UTF-8."""
    text = (str(error) or type(error).__name__)[:ERROR_MAX] if error is not None else ""
    return text.encode(errors="replace").decode()
