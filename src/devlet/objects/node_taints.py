"""Taints of nodes, and the tolerations of pods. Pure."""

from collections.abc import Iterable, Sequence

from devlet.objects.node import Taint
from devlet.objects.pod import Toleration
from devlet.objects.tolerations import tolerates

__all__ = ["HARD", "SOFT", "untolerated"]

HARD = ("NoSchedule", "NoExecute")  # effects that keep pods away
SOFT = ("PreferNoSchedule",)


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> list[Taint]:
    return [taint for taint in taints if not any(tolerates(each, taint) for each in tolerations)]
