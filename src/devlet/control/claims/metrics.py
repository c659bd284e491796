"""The claim controller's metrics, with the names of kube-controller-manager."""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping

from devlet.cluster.informer import Informer
from devlet.kit.metrics import Registry
from devlet.objects.claims.from_template import ENTRY_ANNOTATION, EXTENDED_ANNOTATION
from devlet.objects.types.claim import DeviceRequest, ResourceClaim

__all__ = ["ClaimMetrics"]


class ClaimMetrics:
    def __init__(self, registry: Registry, claims: Informer[ResourceClaim]) -> None:
        self._claims = claims
        self._creates = registry.counter(
            "resourceclaim_controller_creates_total",
            "Number of ResourceClaims creation requests, categorized by creation status and admin access",
            ("status", "admin_access"),
        )
        registry.gauge(
            "resourceclaim_controller_resource_claims",
            "Number of ResourceClaims, categorized by allocation status, admin access, and source. Source can be"
            " 'resource_claim_template' (created from a template), 'extended_resource' (extended resources), or empty"
            " (manually created by a user).",
            ("allocated", "admin_access", "source"),
            self._count,
        )

    def created(self, requests: Iterable[DeviceRequest], *, success: bool) -> None:
        self._creates.add("success" if success else "failure", _admin_access(requests))

    def _count(self) -> Mapping[tuple[str, ...], float]:
        found: Tally[tuple[str, ...]] = Tally(map(_labels, self._claims.all()))
        return {labels: float(number) for labels, number in found.items()}


def _labels(claim: ResourceClaim) -> tuple[str, ...]:
    allocated = "true" if claim.status.allocation else "false"
    return allocated, _admin_access(claim.spec.devices.requests), _source(claim.metadata.annotations)


def _admin_access(requests: Iterable[DeviceRequest]) -> str:
    return "true" if any(request.exactly and request.exactly.admin_access for request in requests) else "false"


def _source(annotations: Mapping[str, str]) -> str:
    if annotations.get(EXTENDED_ANNOTATION) == "true":
        return "extended_resource"
    return "resource_claim_template" if annotations.get(ENTRY_ANNOTATION) else ""
