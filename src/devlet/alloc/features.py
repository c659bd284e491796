"""What the allocator may do (Kubernetes' feature gates), and where it does better than the reference.

With `Rules.reference()` every answer is the reference's, defects included. `Rules()` has all improvements; each is
described in docs/allocation.md under the number it has there, and can be turned off alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from devlet.errors import InvalidInput

__all__ = ["ALL_FEATURES", "Features", "Rules"]


@dataclass(frozen=True, slots=True)
class Features:
    """On by default is what Kubernetes 1.36 has on by default, and list attributes."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_binding_and_status: bool = True
    consumable_capacity: bool = True
    list_type_attributes: bool = True

    @staticmethod
    def named(gates: Mapping[str, bool]) -> "Features":
        """From the names that the reference's allocator has for them, such as `AdminAccess`."""
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
    """Improvements over the reference, by the number they have in the documentation."""

    best_fit: bool = True  # 5: shares and partitions go where the least is left
    errors_do_not_match: bool = True  # 6: a selector that fails on a device does not match it; the others are tried
    only_matching_pools: bool = True  # 7: All looks at broken pools only if they could have a matching device
    own_counter_sets: bool = True  # 8: a set that is over-consumed blocks the devices that use it, not the pool
    admin_is_exempt: bool = True  # 9: admin access needs no counters and no capacity, and takes nothing away
    exact_constraints: bool = True  # 10: distinct means pairwise, list intersections survive backtracking
    strict_capacity: bool = True  # 12: negative amounts are refused, names may carry the driver's domain
    single_config: bool = True  # 13: a configuration is listed once
    whole_pool_generation: bool = True  # 18: an old generation does not count if any node has a newer one
    all_may_fail: bool = True  # 24: All devices against a constraint is a no while something else can be tried
    shares_without_amounts: bool = True  # 25: a share holds the device's counters even if nothing of it is consumed

    @staticmethod
    def reference() -> "Rules":
        return Rules(**{field.name: False for field in fields(Rules)})

    @property
    def is_reference(self) -> bool:
        return not any(getattr(self, field.name) for field in fields(Rules))
