"""Changes that the store makes to the status of ResourceClaims."""

from devlet.objects.documents import Document


def drop_released_devices(claim: Document, old: Document) -> None:
    """Remove the reports on devices that the claim no longer has."""
    status = claim.get("status") or {}
    released = _allocated(old.get("status") or {}) - _allocated(status)
    if released and status.get("devices"):
        left = [device for device in status["devices"] if _identity(device) not in released]
        claim["status"] = {k: v for k, v in status.items() if k != "devices"} | ({"devices": left} if left else {})


def _allocated(status: Document) -> set[tuple[str | None, ...]]:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return {_identity(result) for result in results}


def _identity(device: Document) -> tuple[str | None, ...]:
    return tuple(device.get(key) for key in ("driver", "pool", "device", "shareID"))
