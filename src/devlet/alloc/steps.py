"""A step of the search: one alternative of one request, with the devices that may be assigned to it, in order."""

from dataclasses import dataclass, field

from devlet.alloc.amounts import Amount, amounts
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.requests import Alternative

__all__ = ["Step"]


@dataclass(slots=True, eq=False)
class Step:
    """One alternative of a request. `candidates` match the selectors, reach the node, are free, and have no untolerated
    taints. Mode All needs every one, so its candidates include unusable devices. `failures` are candidates whose
    selectors fail: trying one is a fatal error."""

    claim: int
    position: int  # index of the request in the claim
    request: str
    alternative: Alternative
    number: int
    candidates: list[DeviceEntry]
    failures: dict[DeviceEntry, str]
    where: str  # used in messages
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
        """Return whether the step belongs to a list of alternatives, even a list of one."""
        return self.alternative.is_sub

    def amounts(self, entry: DeviceEntry) -> tuple[Amount, ...] | str:
        """Return what the step takes of each capacity of a device, or why it cannot use the device."""
        found = self._amounts.get(entry)
        if found is None:
            found = amounts(
                entry.device, dict(self.alternative.capacity), entry.identity.driver, strict=self.strict_capacity
            )
            self._amounts[entry] = found
        return found
