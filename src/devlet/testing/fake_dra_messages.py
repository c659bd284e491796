"""The messages of a DRA driver in every API version: what a call asks, and the answer in that version's form. Pure.

The versions differ in what they can say: only v1 knows shares, those before v1alpha4 only names of CDI devices, and
v1alpha2 and v1alpha1 are asked for one claim at a time, so that an error of a claim is one of the call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from devlet.objects.identifiers import ClaimName, ClaimUID
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, ClaimRef, DeviceReport, HealthService, Service
from devlet.testing.dra_script import PREPARE, UNPREPARE, Answers
from devlet.wire.dra_health import api_pb2 as pb_health
from devlet.wire.dra_v1 import api_pb2 as pb_v1
from devlet.wire.dra_v1alpha1 import api_pb2 as pb_v1alpha1
from devlet.wire.dra_v1alpha2 import api_pb2 as pb_v1alpha2
from devlet.wire.dra_v1alpha3 import api_pb2 as pb_v1alpha3
from devlet.wire.dra_v1beta1 import api_pb2 as pb_v1beta1

__all__ = ["ADVERTISED", "Method", "claims_of", "encode", "health_list", "health_path", "large_answer", "method_of"]

ADVERTISED: Mapping[Service, str] = {
    Service.V1: "v1.DRAPlugin",
    Service.V1BETA1: "v1beta1.DRAPlugin",
    Service.V1ALPHA4: "v1alpha3.NodeService",
    Service.V1ALPHA3: "1.0.0",
    Service.V1ALPHA2: "1.0.0",
    Service.V1ALPHA1: "1.0.0",
}
_ON_THE_WIRE: Mapping[Service, str] = {
    Service.V1: "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    Service.V1BETA1: "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
    Service.V1ALPHA4: "v1alpha3.Node",
    Service.V1ALPHA3: "v1alpha3.Node",
    Service.V1ALPHA2: "v1alpha2.Node",
    Service.V1ALPHA1: "v1alpha1.Node",
}
_MODULES: Mapping[Service, ModuleType] = {
    Service.V1: pb_v1,
    Service.V1BETA1: pb_v1beta1,
    Service.V1ALPHA4: pb_v1beta1,
    Service.V1ALPHA3: pb_v1alpha3,
    Service.V1ALPHA2: pb_v1alpha2,
    Service.V1ALPHA1: pb_v1alpha1,
}
_ONE_BY_ONE = (Service.V1ALPHA2, Service.V1ALPHA1)
_HEALTH: Mapping[str, int] = {"Unknown": 0, "Healthy": 1, "Unhealthy": 2}


@dataclass(frozen=True, slots=True)
class Method:
    """A method. `name` is the current name, whatever the version calls it."""

    service: Service
    name: str

    @property
    def own_name(self) -> str:
        """Return the name in this version, with which its messages begin."""
        return self.name.removesuffix("s") if self.service in _ONE_BY_ONE else self.name

    @property
    def path(self) -> str:
        return f"/{_ON_THE_WIRE[self.service]}/{self.own_name}"


def method_of(path: str, services: Sequence[Service]) -> Method | None:
    """Return the method of these services that has the path."""
    methods = [Method(service, name) for service in services for name in (PREPARE, UNPREPARE)]
    return next((method for method in methods if method.path == path), None)


def claims_of(method: Method, blob: bytes) -> tuple[ClaimRef, ...]:
    request = _message(method, "Request").FromString(blob)
    if method.service in _ONE_BY_ONE:
        told = tuple(getattr(request, "cdi_devices", ()))
        return (ClaimRef(request.namespace, ClaimName(request.claim_name), ClaimUID(request.claim_uid), told),)
    return tuple(ClaimRef(each.namespace, ClaimName(each.name), ClaimUID(each.uid)) for each in request.claims)


def encode(method: Method, answers: Answers) -> bytes | ClaimProblem:
    """Encode an answer. Raise a problem if the version can express it only as the status of the call."""
    if method.service in _ONE_BY_ONE:
        return _encode_one(method, answers)
    response = _message(method, "Response")()
    for uid, answer in answers.items():
        entry = response.claims[uid]
        if isinstance(answer, ClaimProblem):
            entry.error = answer.message
        elif method.name == PREPARE:
            _fill(method.service, entry, answer)
    encoded: bytes = response.SerializeToString()
    return encoded


def health_list(reports: Sequence[DeviceReport], now: float = 0.0) -> bytes:
    """Encode a list of reports. The health of a report may also be a number that no version defines."""
    message = pb_health.NodeWatchResourcesResponse()
    for report in reports:
        message.devices.add(
            device=pb_health.DeviceIdentifier(pool_name=report.pool, device_name=report.device),
            health=_health(report.health),
            last_updated_time=int(now),
            health_check_timeout_seconds=int(report.timeout),
            message=report.message,
        )
    return message.SerializeToString()


def health_path(service: HealthService) -> str:
    return f"/{service}/NodeWatchResources"


def large_answer(size: int, uid: str = "some-uid") -> bytes:
    """Return a message for `answer(PREPARE, …)`: a prepared claim whose device has a name of `size` bytes, in v1 and
    v1beta1."""
    device = pb_v1.Device(pool_name="pool", device_name="x" * size)
    claims = {uid: pb_v1.NodePrepareResourceResponse(devices=[device])}
    return pb_v1.NodePrepareResourcesResponse(claims=claims).SerializeToString()


def _health(word: str) -> Any:
    return _HEALTH[word] if word in _HEALTH else int(word)


def _message(method: Method, kind: str) -> Any:
    return getattr(_MODULES[method.service], method.own_name + kind)


def _encode_one(method: Method, answers: Answers) -> bytes | ClaimProblem:
    response = _message(method, "Response")()
    for answer in answers.values():
        if isinstance(answer, ClaimProblem):
            return answer
        if method.name == PREPARE:
            response.cdi_devices.extend(_cdi_devices(answer))
    encoded: bytes = response.SerializeToString()
    return encoded


def _fill(service: Service, entry: Any, devices: Sequence[PreparedDevice]) -> None:
    if service.is_legacy:
        entry.cdi_devices.extend(_cdi_devices(devices))
        return
    for device in devices:
        added = entry.devices.add(
            pool_name=device.pool,
            device_name=device.device,
            request_names=device.requests or (),
            cdi_device_ids=device.cdi_devices or (),
        )
        if device.share is not None and service is Service.V1:
            added.share_id = device.share


def _cdi_devices(devices: Sequence[PreparedDevice]) -> list[str]:
    return [id for device in devices for id in device.cdi_devices or ()]
