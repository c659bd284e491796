"""Rules for ResourceClaim.status.

The allocation is written once; drivers then report about its devices. Removing the allocation requires an empty
`reservedFor`. Before it calls these checks, the caller removes `devices` that are no longer allocated.
"""

from ipaddress import IPv4Interface, IPv6Interface, ip_interface

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import allocation, conditions, config
from devlet.objects.validation.field_errors import (
    Causes,
    byte_length,
    duplicates,
    forbidden,
    immutable,
    invalid,
    name_errors,
    required,
    too_long,
    too_many,
)

RESERVED_FOR_MAX = 256
CONDITIONS_MAX = 8
IPS_MAX = 16
INTERFACE_NAME_MAX = 256
HARDWARE_ADDRESS_MAX = 128


def check_update(document: Document, old: Document) -> Causes:
    status, old_status = document.get("status") or {}, old.get("status") or {}
    yield from _check_reserved_for(document, status, old_status)
    yield from _check_allocation(status.get("allocation"), old_status.get("allocation"), old.get("spec") or {})
    if not (devices := status.get("devices") or []) or devices == old_status.get("devices"):
        return
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
    yield from _check_devices(devices, "status.devices", {_identity(result) for result in results})


def _check_allocation(new: Document | None, old: Document | None, claim_spec: Document) -> Causes:
    if new is not None and old is None:
        yield from allocation.check(new, "status.allocation", claim_spec)
    elif new is not None:
        yield from immutable("status.allocation", new, old)


def _check_reserved_for(document: Document, status: Document, old_status: Document) -> Causes:
    path, consumers = "status.reservedFor", status.get("reservedFor") or []
    if len(consumers) > RESERVED_FOR_MAX:
        yield too_many(path, len(consumers), RESERVED_FOR_MAX)
    else:
        for i, consumer in enumerate(consumers):
            yield from _check_consumer(consumer, f"{path}[{i}]")
        yield from duplicates(path, [consumer.get("uid", "") for consumer in consumers])
    if not consumers:
        return
    if status.get("allocation") is None:
        yield forbidden(path, "may not be specified when `allocated` is not set")
    elif (document.get("metadata") or {}).get("deletionTimestamp"):
        before = {consumer.get("uid") for consumer in old_status.get("reservedFor") or ()}
        if any(consumer.get("uid") not in before for consumer in consumers):
            detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            yield forbidden(path, detail)


def _check_consumer(consumer: Document, path: str) -> Causes:
    if consumer.get("apiGroup"):
        yield from name_errors(f"{path}.apiGroup", consumer["apiGroup"], names.dns_subdomain)
    for member in ("resource", "name", "uid"):
        if not consumer.get(member):
            yield required(f"{path}.{member}")


def _identity(device: Document) -> tuple[str, str, str, str]:
    return (
        device.get("driver", ""),
        device.get("pool", ""),
        device.get("device", ""),
        device.get("shareID") or "",
    )


def _check_devices(devices: list[Document], path: str, allocated: set[tuple[str, str, str, str]]) -> Causes:
    identities = [_identity(device) for device in devices]
    yield from duplicates(path, ["/".join(filter(None, identity)) for identity in identities])
    for i, (device, identity) in enumerate(zip(devices, identities, strict=True)):
        if identity not in allocated:
            yield invalid(f"{path}[{i}]", "/".join(filter(None, identity)), "must be an allocated device in the claim")
        yield from _check_device(device, f"{path}[{i}]")


def _check_device(device: Document, path: str) -> Causes:
    if device.get("shareID"):
        yield from name_errors(f"{path}.shareID", device["shareID"], names.uuid)
    yield from conditions.check(device.get("conditions") or [], f"{path}.conditions", CONDITIONS_MAX)
    if device.get("data") is not None:
        yield from config.check_raw(device["data"], f"{path}.data")
    if device.get("networkData") is not None:
        yield from _check_network_data(device["networkData"], f"{path}.networkData")


def _check_network_data(network: Document, path: str) -> Causes:
    if byte_length(network.get("interfaceName", "")) > INTERFACE_NAME_MAX:
        yield too_long(f"{path}.interfaceName", INTERFACE_NAME_MAX)
    if byte_length(network.get("hardwareAddress", "")) > HARDWARE_ADDRESS_MAX:
        yield too_long(f"{path}.hardwareAddress", HARDWARE_ADDRESS_MAX)
    ips = network.get("ips") or []
    if len(ips) > IPS_MAX:
        yield too_many(f"{path}.ips", len(ips), IPS_MAX)
        return
    for i, ip in enumerate(ips):
        yield from _check_interface_address(ip, f"{path}.ips[{i}]")
    yield from duplicates(f"{path}.ips", ips)


def _check_interface_address(text: str, path: str) -> Causes:
    address = _interface_address(text)
    if address is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid(path, text, detail)
    elif str(address) != text:
        yield invalid(path, text, f'must be in canonical form ("{address}")')


def _interface_address(text: str) -> IPv4Interface | IPv6Interface | None:
    address, slash, length = text.partition("/")
    if not slash or not (length.isascii() and length.isdigit()):
        return None
    parts = address.split(".")
    # `ipaddress` rejects leading zeros; here they are reported as an address that is not canonical.
    if len(parts) == 4 and all(part.isascii() and part.isdigit() and len(part) <= 3 for part in parts):
        address = ".".join(str(int(part)) for part in parts)
    try:
        return ip_interface(f"{address}/{length}")
    except ValueError:
        return None
