"""Taints of nodes, and the tolerations of pods. Pure."""

from collections.abc import Iterable, Sequence

from devlet.objects.node import Taint
from devlet.objects.pod import Toleration

__all__ = ["HARD", "SOFT", "tolerates", "untolerated"]

HARD = ("NoSchedule", "NoExecute")  # effects that keep pods away
SOFT = ("PreferNoSchedule",)


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> list[Taint]:
    return [taint for taint in taints if not any(tolerates(each, taint) for each in tolerations)]


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Comparing operators (Lt, Gt) are behind a gate that is off: they tolerate nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
