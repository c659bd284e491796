"""The content of a claim checkpoint as values.

null and empty differ in the file, so they differ here. A file may contain a claim twice: see `by_name`.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from devlet.objects.identifiers import ObjectKey
from devlet.objects.types.claim import PreparedDevice

__all__ = ["Checkpoint", "ClaimEntry", "Form", "PreparedDevice", "by_name"]


class Form(StrEnum):
    """Versions of the file, named after the first Kubernetes release that wrote them. All but the current one contain
    the version "v1"."""

    V1_31 = "1.31"  # the current one; devices have a share ID since 1.35
    V1_30 = "1.30"  # resource handles may have structured data; that changed all checksums
    V1_28 = "1.28"  # with resource handles
    V1_27 = "1.27"  # names of CDI devices by driver
    BETA = "1.27-beta"  # names of the CDI devices of one driver


class ClaimEntry(Struct, frozen=True):
    """A claim that is prepared, or about to be prepared, for the pods with these UIDs."""

    uid: str
    name: str
    namespace: str
    pods: frozenset[str] | None
    drivers: Mapping[str, tuple[PreparedDevice, ...] | None] | None


class Checkpoint(Struct, frozen=True):
    """`form` is the version of the file, `checksum` the one in it, which is meaningless unless `verified`."""

    claims: tuple[ClaimEntry, ...] | None
    form: Form = Form.V1_31
    checksum: int = 0
    verified: bool = True


def by_name(claims: Iterable[ClaimEntry]) -> dict[ObjectKey, ClaimEntry]:
    """Index the claims by namespace and name. The last one of several with the same key counts."""
    return {(claim.namespace, claim.name): claim for claim in claims}
