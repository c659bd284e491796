"""What claims want, read once: requests with their alternatives, as the search uses them.

A request for a class or mode that does not exist cannot be satisfied on any node. It raises an error instead of not
fitting.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from devlet.alloc.features import Features, Rules
from devlet.alloc.inventory import Inventory
from devlet.alloc.selectors import Selectors, SelectorSet
from devlet.errors import InvalidInput, InvalidSelector
from devlet.objects.types.claim import (
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from devlet.objects.types.device_class import DeviceClass, DeviceSelector
from devlet.objects.types.meta import QuantityText
from devlet.objects.values.quantity import Quantity

__all__ = ["RESULTS_MAX", "Alternative", "Reader", "Request", "claim_name", "read_request"]

RESULTS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to satisfy a request; a request without subrequests has one.

    `name` is the name of the subrequest (or of the request), `full_name` the one that results are labelled with.
    """

    name: str
    full_name: str
    is_sub: bool
    device_class: DeviceClass
    selectors: SelectorSet
    is_all: bool
    count: int
    admin_access: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: tuple[tuple[str, Quantity], ...]


@dataclass(frozen=True, slots=True)
class Request:
    name: str
    alternatives: tuple[Alternative, ...]
    is_list: bool


def claim_name(claim: ResourceClaim) -> str:
    """Return the name used in messages: namespace/name."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


@dataclass(frozen=True, slots=True)
class Reader:
    """The context that requests are read in."""

    inventory: Inventory
    selectors: Selectors
    features: Features
    rules: Rules


def read_request(claim: ResourceClaim, request: DeviceRequest, reader: Reader) -> Request:
    """Read a request. Raises InvalidInput."""
    features = reader.features
    where = f"claim {claim_name(claim)}, request {request.name}"
    if request.first_available:
        if not features.prioritized_list:
            raise InvalidInput(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
        parts: Sequence[ExactDeviceRequest | DeviceSubRequest] = request.first_available
    elif request.exactly is None:
        raise InvalidInput(f"{where}: neither exactly nor firstAvailable is set (unsupported request type?)")
    else:
        parts = (request.exactly,)
    for part in parts if not features.consumable_capacity else ():
        if part.capacity is not None:
            if isinstance(part, DeviceSubRequest):
                where = f"claim {claim_name(claim)}, subrequest {part.name}"
            raise InvalidInput(f"{where}: has capacity requests, but the DRAConsumableCapacity feature is disabled")
    return Request(
        request.name,
        tuple(_alternative(claim, request, part, reader) for part in parts),
        bool(request.first_available),
    )


def _alternative(
    claim: ResourceClaim,
    request: DeviceRequest,
    part: ExactDeviceRequest | DeviceSubRequest,
    reader: Reader,
) -> Alternative:
    is_sub = isinstance(part, DeviceSubRequest)
    name = part.name if isinstance(part, DeviceSubRequest) else request.name
    where = f"claim {claim_name(claim)}, request {name}"
    _check(part, reader.features, where)
    device_class = reader.inventory.classes.get(part.device_class_name)
    if device_class is None:
        missing = f'deviceclass.resource.k8s.io "{part.device_class_name}" not found'
        raise InvalidInput(f"{where}: could not retrieve device class {part.device_class_name}: {missing}")
    if part.allocation_mode not in ("ExactCount", "All"):
        raise InvalidInput(f"{where}: unsupported count mode {part.allocation_mode}")
    if part.count < 0:
        raise InvalidInput(f"{where}: count {part.count} is negative")
    if reader.rules.errors_do_not_match:
        _check_expressions(claim, device_class, part, reader)
    return Alternative(
        name,
        f"{request.name}/{name}" if is_sub else name,
        is_sub,
        device_class,
        reader.selectors.set_of(_expressions(device_class.spec.selectors), _expressions(part.selectors)),
        part.allocation_mode == "All",
        part.count,
        bool(getattr(part, "admin_access", None)),
        part.tolerations,
        _capacity(part, reader.rules, where),
    )


def _check(part: ExactDeviceRequest | DeviceSubRequest, features: Features, where: str) -> None:
    for i, selector in enumerate(part.selectors):
        if selector.cel is None:
            raise InvalidInput(f"{where}, selector #{i}: CEL expression empty (unsupported selector type?)")
    if not features.admin_access and getattr(part, "admin_access", None) is not None:
        raise InvalidInput(f"{where}: admin access is requested, but the feature is disabled")
    if not part.device_class_name:
        raise InvalidInput(f"{where}: missing device class name (unsupported request type?)")


def _check_expressions(
    claim: ResourceClaim, device_class: DeviceClass, part: ExactDeviceRequest | DeviceSubRequest, reader: Reader
) -> None:
    """Check that all expressions compile. An expression that does not compile is an error even if no device is
    examined."""
    for whose, selectors in (
        (f"class {device_class.name}", device_class.spec.selectors),
        (f"claim {claim_name(claim)}", part.selectors),
    ):
        for i, expression in enumerate(_expressions(selectors)):
            try:
                reader.selectors.program(expression)
            except InvalidSelector as e:
                raise InvalidInput(f"{whose}: selector #{i}: CEL compile error: {e}") from e


def _expressions(selectors: Sequence[DeviceSelector]) -> tuple[str, ...]:
    return tuple(selector.cel.expression if selector.cel else "" for selector in selectors)


def _capacity(
    part: ExactDeviceRequest | DeviceSubRequest, rules: Rules, where: str
) -> tuple[tuple[str, Quantity], ...]:
    if part.capacity is None:
        return ()
    wanted = {name: _amount(amount, f"{where}: capacity {name}") for name, amount in part.capacity.requests.items()}
    if rules.strict_capacity:
        for name, amount in wanted.items():
            if amount.sign < 0:
                raise InvalidInput(f"{where}: capacity {name}: {amount} is negative, ask for zero or more")
    return tuple(wanted.items())


def _amount(amount: QuantityText, where: str) -> Quantity:
    try:
        return Quantity.parse(amount)
    except InvalidInput as e:
        raise InvalidInput(f"{where}: {amount!r} is not a quantity: {e}") from e
