"""A claim checkpoint as a table for people, and as a JSON document for programs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from devlet.cli.tables import Layout, cell_text
from devlet.state.claim_entry import Checkpoint, ClaimEntry, PreparedDevice

NONE = "<none>"
_HEADER = ["NAMESPACE", "CLAIM", "DRIVER", "POOL", "DEVICE", "REQUESTS", "POD UIDS"]
_WIDE = ["CLAIM UID", "SHARE ID", "CDI DEVICES"]


def table(checkpoint: Checkpoint, *, wide: bool) -> Iterator[str]:
    """Yield a row for each device, and for each claim or driver without devices."""
    if not checkpoint.claims:
        yield "No claims are prepared."
        return
    rows = [_row(*found, wide=wide) for claim in checkpoint.claims for found in _devices(claim)]
    header = _HEADER + _WIDE if wide else _HEADER
    yield from Layout().lines([header, *([cell_text(cell or NONE) for cell in row] for row in rows)])


def _devices(claim: ClaimEntry) -> Iterator[tuple[ClaimEntry, str, PreparedDevice]]:
    nothing = PreparedDevice("", "", None, None, None)
    for driver, devices in sorted((claim.drivers or {"": None}).items()):
        yield from ((claim, driver, device) for device in devices or (nothing,))


def _row(claim: ClaimEntry, driver: str, device: PreparedDevice, *, wide: bool) -> list[str]:
    row = [claim.namespace, claim.name, driver, device.pool, device.device, _joined(device.requests)]
    row.append(_joined(sorted(claim.pods or ())))
    return [*row, claim.uid, device.share or "", _joined(device.cdi_devices)] if wide else row


def _joined(names: Iterable[str] | None) -> str:
    return ",".join(names or ())


def document(checkpoint: Checkpoint) -> dict[str, Any]:
    claims = checkpoint.claims
    return {
        "version": str(checkpoint.form),
        "claims": None if claims is None else [_claim(claim) for claim in claims],
    }


def _claim(claim: ClaimEntry) -> dict[str, Any]:
    return {
        "uid": claim.uid,
        "name": claim.name,
        "namespace": claim.namespace,
        "podUIDs": None if claim.pods is None else sorted(claim.pods),
        "drivers": None if claim.drivers is None else _drivers(claim.drivers),
    }


def _drivers(drivers: Mapping[str, tuple[PreparedDevice, ...] | None]) -> dict[str, Any]:
    return {
        driver: None if devices is None else [_device(device) for device in devices]
        for driver, devices in sorted(drivers.items())
    }


def _device(device: PreparedDevice) -> dict[str, Any]:
    """Return the device with the field names of the file."""
    return {
        "poolName": device.pool,
        "deviceName": device.device,
        "shareID": device.share,
        "requestNames": _list(device.requests),
        "cdiDeviceIDs": _list(device.cdi_devices),
    }


def _list(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)
