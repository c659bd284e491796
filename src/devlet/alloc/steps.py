"""A step of the search: one alternative of one request, with the devices that may be given to it, in order."""

from dataclasses import dataclass, field

from devlet.alloc.amounts import Amount, amounts
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.requests import Alternative

__all__ = ["Step"]


@dataclass(slots=True, eq=False)
class Step:
    """`candidates` match the selectors, reach the node, are not taken and tolerated. With mode All they are all to be
    had, so those that cannot be used are in it as well. `failures` are candidates whose selectors fail: fatal if tried.
    """

    claim: int
    position: int  # of the request in the claim
    request: str
    alternative: Alternative
    number: int
    candidates: list[DeviceEntry]
    failures: dict[DeviceEntry, str]
    where: str  # in messages
    strict_capacity: bool
    _amounts: dict[DeviceEntry, tuple[Amount, ...] | str] = field(default_factory=dict)

    @property
    def is_all(self) -> bool:
        return self.alternative.is_all

    @property
    def is_admin(self) -> bool:
        return self.alternative.admin_access

    @property
    def full_name(self) -> str:
        return self.alternative.full_name

    @property
    def is_sub(self) -> bool:
        """Whether it is one of a list of alternatives, even if of one."""
        return self.alternative.is_sub

    def amounts(self, entry: DeviceEntry) -> tuple[Amount, ...] | str:
        """What the step takes of each capacity of a device, or why it cannot."""
        found = self._amounts.get(entry)
        if found is None:
            found = amounts(
                entry.device, dict(self.alternative.capacity), entry.identity.driver, strict=self.strict_capacity
            )
            self._amounts[entry] = found
        return found
