"""What is in a claim checkpoint, as values.

null and empty are different in the file, so they are different here. A file may name a claim twice: `by_name` says
which one counts.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from devlet.objects.types.claim import PreparedDevice

__all__ = ["Checkpoint", "ClaimEntry", "Form", "PreparedDevice", "by_name"]


class Form(StrEnum):
    """Versions of the file, by the first Kubernetes that wrote them. All but the present one say "v1"."""

    V1_31 = "1.31"  # the present one; devices have a share ID since 1.35
    V1_30 = "1.30"  # resource handles may have structured data, which changes the checksum of all of them
    V1_28 = "1.28"  # with resource handles
    V1_27 = "1.27"  # names of CDI devices by driver
    BETA = "1.27-beta"  # names of CDI devices of one driver


class ClaimEntry(Struct, frozen=True):
    """A claim that is prepared, or about to be, for the pods with these UIDs."""

    uid: str
    name: str
    namespace: str
    pods: frozenset[str] | None
    drivers: Mapping[str, tuple[PreparedDevice, ...] | None] | None


class Checkpoint(Struct, frozen=True):
    """`form` is what the file was, `checksum` the one that it has. It says nothing if it is not `verified`."""

    claims: tuple[ClaimEntry, ...] | None
    form: Form = Form.V1_31
    checksum: int = 0
    verified: bool = True


def by_name(claims: Iterable[ClaimEntry]) -> dict[tuple[str, str], ClaimEntry]:
    """By namespace and name. Of several the last one counts."""
    return {(claim.namespace, claim.name): claim for claim in claims}
