"""Every rule that a DRA driver can break."""

from itertools import chain

from devlet.sanity.check import Check
from devlet.sanity.checks.dra import (
    batches,
    calls,
    cdi,
    changes,
    crashes,
    health,
    instances,
    kubelet_restarts,
    metadata,
    preparing,
    registration,
    shares,
    slices,
    stopping,
    unpreparing,
)
from devlet.sanity.rig_dra import DraRig

__all__ = ["ALL"]

_MODULES = (
    registration,
    slices,
    preparing,
    shares,
    batches,
    cdi,
    metadata,
    unpreparing,
    calls,
    health,
    changes,
    kubelet_restarts,
    crashes,
    stopping,
    instances,
)

ALL: tuple[Check[DraRig], ...] = tuple(chain.from_iterable(module.checks for module in _MODULES))
