"""A device that a claim holds, or its share of one, and the rule which two of them exclude each other."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from devlet.objects.claim import DeviceResult
from devlet.objects.identifiers import DeviceIdentity

__all__ = ["Holding", "holdings_of"]


class Holding(Struct, frozen=True):
    """A device that a claim holds, or a share of it."""

    device: DeviceIdentity
    share: str | None = None
    admin: bool = False

    def excludes(self, other: "Holding") -> bool:
        """Return True if two claims cannot hold both."""
        if self.device != other.device or self.admin or other.admin:
            return False
        return not (self.share and other.share) or self.share == other.share


def holdings_of(results: Iterable[DeviceResult]) -> Iterator[Holding]:
    """Yield the devices, and shares of devices, that an allocation gives to a claim."""
    for result in results:
        yield Holding(result.identity, result.share_id, bool(result.admin_access))
