"""Whether a taint is tolerated. The same rule applies to taints of nodes and of devices."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from devlet.objects.types.node import Taint
from devlet.objects.types.pod import Toleration

__all__ = [
    "HARD",
    "SOFT",
    "tolerates",
    "untolerated",
]


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
    """Return whether the toleration matches the taint. Comparison operators (Lt, Gt) are behind a gate that is off:
    they tolerate nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


HARD = ("NoSchedule", "NoExecute")  # effects that keep pods away
SOFT = ("PreferNoSchedule",)


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> list[Taint]:
    return [taint for taint in taints if not any(tolerates(each, taint) for each in tolerations)]
