"""The allocator's features (Kubernetes' feature gates) and its improvements over the reference.

With `Rules.reference()` every answer is the reference's, defects included. `Rules()` enables all improvements. Each is
described in docs/allocation.md under its number and can be turned off separately.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from devlet.errors import InvalidInput

__all__ = ["ALL_FEATURES", "Features", "Rules"]


@dataclass(frozen=True, slots=True)
class Features:
    """Feature gates. The defaults are those of Kubernetes 1.36, plus list attributes."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_binding_and_status: bool = True
    consumable_capacity: bool = True
    list_type_attributes: bool = True

    @staticmethod
    def named(gates: Mapping[str, bool]) -> "Features":
        """Build features from the names in the reference's allocator, such as `AdminAccess`."""
        known = {_gate(field.name): field.name for field in fields(Features)}
        for name in gates:
            if name not in known:
                raise InvalidInput(f"unknown allocator feature {name!r}: use one of {', '.join(known)}")
        return Features(**{known[name]: bool(on) for name, on in gates.items()})

    @staticmethod
    def names() -> list[str]:
        return [_gate(field.name) for field in fields(Features)]


def _gate(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


ALL_FEATURES: Final = Features()


@dataclass(frozen=True, slots=True)
class Rules:
    """Improvements over the reference, with their numbers in the documentation."""

    best_fit: bool = True  # 5: shares and partitions go where the least is left
    errors_do_not_match: bool = True  # 6: a selector that fails on a device does not match it; the others are tried
    only_matching_pools: bool = True  # 7: mode All considers broken pools only if they could have a matching device
    own_counter_sets: bool = True  # 8: an over-consumed counter set blocks the devices that use it, not the pool
    admin_is_exempt: bool = True  # 9: admin access needs no counters or capacity, and takes nothing away
    exact_constraints: bool = True  # 10: distinct means pairwise, list intersections survive backtracking
    strict_capacity: bool = True  # 12: negative amounts are rejected, names may carry the driver's domain
    single_config: bool = True  # 13: a configuration is listed once
    whole_pool_generation: bool = True  # 18: an old generation does not count if any node has a newer one
    all_may_fail: bool = True  # 24: All devices against a constraint is not an error while other choices remain
    shares_without_amounts: bool = True  # 25: a share holds the device's counters even if it consumes nothing

    @staticmethod
    def reference() -> "Rules":
        return Rules(**{field.name: False for field in fields(Rules)})

    @property
    def is_reference(self) -> bool:
        return not any(getattr(self, field.name) for field in fields(Rules))
