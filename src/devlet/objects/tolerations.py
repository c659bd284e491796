"""Whether a taint is tolerated: the same rule for taints of nodes and of devices. Pure."""

from typing import Protocol

__all__ = ["tolerates"]


class _Taint(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class _Toleration(_Taint, Protocol):
    @property
    def operator(self) -> str: ...


def tolerates(toleration: _Toleration, taint: _Taint) -> bool:
    """Comparing operators (Lt, Gt) are behind a gate that is off: they tolerate nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
