"""Encode and decode the messages of the DRA services, in all API versions. Pure.

Answers are refused here only because of their form: if they cannot be decoded, are too large, or contain a claim that
was not requested. The claim manager checks the names. Lists without entries are None, not empty, as in the checkpoint.
A problem with the whole answer is a `ValueError`; a problem with one claim is its `ClaimProblem`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

from google.protobuf.message import DecodeError, Message

from devlet.objects.identifiers import ClaimUID
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, ClaimRef, DeviceReport, Service
from devlet.wire.dra_health import api_pb2 as pb_health
from devlet.wire.dra_v1 import api_pb2 as pb
from devlet.wire.dra_v1alpha1 import api_pb2 as pb_v1alpha1
from devlet.wire.dra_v1alpha2 import api_pb2 as pb_v1alpha2
from devlet.wire.dra_v1alpha3 import api_pb2 as pb_v1alpha3
from devlet.wire.dra_v1beta1 import api_pb2 as pb_v1beta1

__all__ = [
    "MAX_ENTRIES",
    "MAX_REPORTS",
    "MAX_TEXT",
    "MAX_TIMEOUT",
    "Prepared",
    "Unprepared",
    "prepare_request",
    "prepared",
    "reports",
    "unprepare_request",
    "unprepared",
]

MAX_ENTRIES = 10_000  # devices of a claim, and names in a list of a device
MAX_TEXT = 4_096  # characters of one name; longer errors are cut
MAX_REPORTS = 100_000  # devices in one report on their health
MAX_TIMEOUT = 365 * 86_400.0  # seconds; a longer time means "forever"

Prepared: TypeAlias = dict[ClaimUID, tuple[PreparedDevice, ...] | ClaimProblem]
Unprepared: TypeAlias = dict[ClaimUID, ClaimProblem | None]

_HEALTH = {int(pb_health.HEALTHY): "Healthy", int(pb_health.UNHEALTHY): "Unhealthy"}
_SKIPPED = ClaimProblem("the driver skipped this claim: its answer has no entry for it")
_SHOWN = 100  # characters of an unknown name


class _Answer(Protocol):
    @property
    def error(self) -> str: ...


M = TypeVar("M", bound=Message)
A = TypeVar("A", bound=_Answer)


def prepare_request(service: Service, claims: Sequence[ClaimRef]) -> bytes:
    """Encode the request. Use only the first claim if the service takes one at a time."""
    match service:
        case Service.V1ALPHA2 | Service.V1ALPHA1:  # the same fields
            return _single(claims[0])
        case _:
            return _listed(claims)


def unprepare_request(service: Service, claims: Sequence[ClaimRef]) -> bytes:
    """Encode the request. Use only the first claim if the service takes one at a time."""
    match service:
        case Service.V1ALPHA1:
            claim = claims[0]
            return pb_v1alpha1.NodeUnprepareResourceRequest(
                namespace=claim.namespace, claim_uid=claim.uid, claim_name=claim.name, cdi_devices=claim.cdi_devices
            ).SerializeToString()
        case Service.V1ALPHA2:  # as for prepare
            return _single(claims[0])
        case _:
            return _listed(claims)


def prepared(service: Service, blob: bytes, asked: Sequence[ClaimRef]) -> Prepared:
    """Return a result for every requested claim. Raise `ValueError` if the answer cannot be decoded or contains other
    claims."""
    match service:
        case Service.V1:
            return _by_claim(_decoded(pb.NodePrepareResourcesResponse, blob).claims, asked, _with_shares)
        case Service.V1BETA1 | Service.V1ALPHA4:
            return _by_claim(_decoded(pb_v1beta1.NodePrepareResourcesResponse, blob).claims, asked, _without_shares)
        case Service.V1ALPHA3:
            return _by_claim(_decoded(pb_v1alpha3.NodePrepareResourcesResponse, blob).claims, asked, _nameless)
        case Service.V1ALPHA2 | Service.V1ALPHA1:  # the same fields
            answer = _decoded(pb_v1alpha2.NodePrepareResourceResponse, blob)
            return {asked[0].uid: _nameless(answer)}


def unprepared(service: Service, blob: bytes, asked: Sequence[ClaimRef]) -> Unprepared:
    """Return None for every requested claim, or its problem. Raise `ValueError` as `prepared` does."""
    match service:
        case Service.V1ALPHA2 | Service.V1ALPHA1:
            _decoded(pb_v1alpha2.NodeUnprepareResourceResponse, blob)
            return {asked[0].uid: None}
        case _:  # the same fields in all of them
            answers = _decoded(pb.NodeUnprepareResourcesResponse, blob).claims
            _check_asked(answers, asked)
            return {claim.uid: _problem(answers, claim.uid) for claim in asked}


def reports(blob: bytes) -> tuple[tuple[DeviceReport, ...], int]:
    """Return what a driver reports about its devices, and how many unnamed entries were dropped."""
    listed = _decoded(pb_health.NodeWatchResourcesResponse, blob).devices
    if len(listed) > MAX_REPORTS:
        raise ValueError(f"has {len(listed)} devices, more than the {MAX_REPORTS} that are accepted")
    named = tuple(_report(one) for one in listed if one.device.pool_name and one.device.device_name)
    return named, len(listed) - len(named)


def _single(claim: ClaimRef) -> bytes:
    return pb_v1alpha2.NodePrepareResourceRequest(
        namespace=claim.namespace, claim_uid=claim.uid, claim_name=claim.name
    ).SerializeToString()


def _listed(claims: Sequence[ClaimRef]) -> bytes:
    """Encode the request of both methods, which is the same from v1alpha3 to v1: without resource handles."""
    listed = [pb.Claim(namespace=claim.namespace, uid=claim.uid, name=claim.name) for claim in claims]
    return pb.NodePrepareResourcesRequest(claims=listed).SerializeToString()


def _decoded(kind: type[M], blob: bytes) -> M:
    try:
        return kind.FromString(blob)
    except DecodeError as e:
        raise ValueError(f"cannot be decoded: {e}") from e


def _by_claim(
    answers: Mapping[str, A], asked: Sequence[ClaimRef], devices: Callable[[A], tuple[PreparedDevice, ...]]
) -> Prepared:
    _check_asked(answers, asked)
    return {claim.uid: _outcome(answers, claim.uid, devices) for claim in asked}


def _check_asked(answers: Mapping[str, object], asked: Sequence[ClaimRef]) -> None:
    if strange := answers.keys() - {claim.uid for claim in asked}:
        raise ValueError(f"has an entry for a claim that was not asked about: UID {min(strange)[:_SHOWN]!r}")


def _outcome(
    answers: Mapping[str, A], uid: ClaimUID, devices: Callable[[A], tuple[PreparedDevice, ...]]
) -> tuple[PreparedDevice, ...] | ClaimProblem:
    if problem := _problem(answers, uid):
        return problem
    try:
        return devices(answers[uid])
    except ValueError as e:
        return ClaimProblem(f"the driver's answer {e}")


def _problem(answers: Mapping[str, _Answer], uid: ClaimUID) -> ClaimProblem | None:
    if uid not in answers:
        return _SKIPPED
    error = answers[uid].error
    return ClaimProblem(error[:MAX_TEXT]) if error else None


def _with_shares(answer: pb.NodePrepareResourceResponse) -> tuple[PreparedDevice, ...]:
    _check_number(answer.devices, "devices")
    return tuple(
        PreparedDevice(
            pool=_name(device.pool_name),
            device=_name(device.device_name),
            share=_name(device.share_id) if device.HasField("share_id") else None,
            requests=_names(device.request_names),
            cdi_devices=_names(device.cdi_device_ids),
        )
        for device in answer.devices
    )


def _without_shares(answer: pb_v1beta1.NodePrepareResourceResponse) -> tuple[PreparedDevice, ...]:
    _check_number(answer.devices, "devices")
    return tuple(
        PreparedDevice(
            pool=_name(device.pool_name),
            device=_name(device.device_name),
            requests=_names(device.request_names),
            cdi_devices=_names(device.cdi_device_ids),
        )
        for device in answer.devices
    )


def _nameless(
    answer: pb_v1alpha3.NodePrepareResourceResponse | pb_v1alpha2.NodePrepareResourceResponse,
) -> tuple[PreparedDevice, ...]:
    """Return one unnamed device: the old APIs do not say which devices these are."""
    names = _names(answer.cdi_devices)
    return (PreparedDevice(pool="", device="", cdi_devices=names),) if names else ()


def _names(values: Sequence[str]) -> tuple[str, ...] | None:
    _check_number(values, "names in a list")
    return tuple(map(_name, values)) or None


def _name(value: str) -> str:
    if len(value) > MAX_TEXT:
        raise ValueError(f"has a name of {len(value)} characters, more than {MAX_TEXT}: {value[:_SHOWN]}…")
    return value


def _check_number(values: Sequence[object], what: str) -> None:
    if len(values) > MAX_ENTRIES:
        raise ValueError(f"has {len(values)} {what}, more than the {MAX_ENTRIES} that are accepted")


def _report(message: pb_health.DeviceHealth) -> DeviceReport:
    return DeviceReport(
        pool=_name(message.device.pool_name),
        device=_name(message.device.device_name),
        health=_HEALTH.get(int(message.health), "Unknown"),
        timeout=min(max(float(message.health_check_timeout_seconds), 0.0), MAX_TIMEOUT),
        message=message.message,
    )
