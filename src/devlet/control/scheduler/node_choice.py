"""Which nodes a pod accepts and prefers: node name, node selector, node affinity and tolerations. Pure.

Equal pods usually, but not always, share one `NodeChoice`, so that it is parsed once and results can be cached by it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from devlet.objects.pods import tolerations as node_taints
from devlet.objects.selectors import nodes as node_selectors
from devlet.objects.selectors.nodes import NodeSelector, Term
from devlet.objects.types.meta import View
from devlet.objects.types.node import Taint
from devlet.objects.types.pod import NodeAffinity, Pod, PreferredSchedulingTerm, Toleration

__all__ = ["NodeChoice", "of_pod"]

_AFFINITY: Final = "spec.affinity.nodeAffinity"
_REQUIRED: Final = f"{_AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = f"{_AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution"

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


@dataclass(frozen=True, slots=True, eq=False)
class NodeChoice:
    """`required` is the required node affinity, None if there is none; `preferred` has weights and terms."""

    node_name: str
    node_selector: tuple[tuple[str, str], ...]
    required: NodeSelector | None
    preferred: tuple[tuple[int, Term], ...]
    tolerations: tuple[Toleration, ...]
    ignores_cordon: bool


def of_pod(pod: Pod) -> NodeChoice:
    """Read the choice of a pod. InvalidInput names the field that cannot be read."""
    spec = pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return _choice(spec.node_name, tuple(spec.node_selector.items()), affinity, spec.tolerations)


@lru_cache(4096)
def _choice(
    node_name: str,
    node_selector: tuple[tuple[str, str], ...],
    affinity: NodeAffinity | None,
    tolerations: tuple[Toleration, ...],
) -> NodeChoice:
    affinity = affinity or NodeAffinity()
    required = node_selectors.parse(_document(affinity.required), _REQUIRED) if affinity.required else None
    preferred = [_preferred(term, f"{_PREFERRED}[{i}].preference") for i, term in enumerate(affinity.preferred)]
    ignores_cordon = not node_taints.untolerated([_CORDON], tolerations)
    return NodeChoice(node_name, node_selector, required, tuple(filter(None, preferred)), tolerations, ignores_cordon)


def _preferred(term: PreferredSchedulingTerm, path: str) -> tuple[int, Term] | None:
    """Parse a preferred term. Return None for one without weight or requirements: it prefers nothing."""
    parsed = node_selectors.parse_term(_document(term.preference), path) if term.weight else None
    return (term.weight, parsed) if parsed else None


def _document(view: View) -> object:
    return msgspec.json.decode(msgspec.json.encode(view))
