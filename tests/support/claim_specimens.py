"""Pods with claims, claims with devices, and devices as drivers answer them: as much of each as a test has to say."""

from collections.abc import Mapping, Sequence
from typing import Any

from devlet.node.claims.records import ClaimKey
from devlet.objects.documents import view
from devlet.objects.identifiers import ClaimName, DriverName
from devlet.objects.types.claim import PreparedDevice, ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["GPU", "NIC", "claim", "device", "key", "pod"]

GPU = DriverName("gpu.example.com")
NIC = DriverName("nic.example.com")


def key(name: str) -> ClaimKey:
    return ClaimKey("default", ClaimName(name))


def pod(uid: str = "pod-1", claims: Mapping[str, str] = {"gpu": "claim"}, **more: Any) -> Pod:
    """`claims`: the claim behind each entry. `uses` are the entries of the one container: (name, request)."""
    uses = more.pop("uses", [(entry, "") for entry in claims])
    status = more.pop("status", {})
    named = [{"name": entry, "request": request} if request else {"name": entry} for entry, request in uses]
    document = {
        "metadata": {"name": uid, "namespace": "default", "uid": uid},
        "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"claims": named, **more.pop("resources", {})}}],
            "resourceClaims": [{"name": entry, "resourceClaimName": name} for entry, name in claims.items()],
            **more,
        },
        "status": status,
    }
    return view(Pod, document)


def claim(
    name: str = "claim",
    uid: str = "",
    *,
    drivers: Sequence[str] = (GPU,),
    pods: Sequence[str] = ("pod-1",),
    allocated: bool = True,
    owner: str = "",
    requests: Sequence[str] = ("req",),
    devices: str = "dev",
    device: str = "",
    share: str = "",
    admin: bool = False,
) -> ResourceClaim:
    """Allocated a device of each of `drivers`: `dev-<name>`, and `dev-<name>-1`, … for a driver named repeatedly. With
    `device`, that one, or a share of it."""
    results = [
        {
            "request": requests[min(i, len(requests) - 1)],
            "driver": driver,
            "pool": "pool",
            "device": device or f"{devices}-{name}{_number(list(drivers)[:i].count(driver))}",
            **({"shareID": share} if share else {}),
            **({"adminAccess": True} if admin else {}),
        }
        for i, driver in enumerate(drivers)
    ]
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}] if owner else []
    reserved = [{"resource": "pods", "name": each, "uid": each} for each in pods]
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "ownerReferences": owners},
        "spec": {"devices": {"requests": [{"name": each.partition("/")[0]} for each in dict.fromkeys(requests)]}},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved} if allocated else {},
    }
    return view(ResourceClaim, document)


def _number(earlier: int) -> str:
    return f"-{earlier}" if earlier else ""


def device(name: str, *cdi: str, requests: tuple[str, ...] | None = None, share: str | None = None) -> PreparedDevice:
    return PreparedDevice("pool", name, share, requests, cdi or None)
