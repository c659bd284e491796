"""The nodes on which an allocated claim can be used: those that its allocation's node selector matches."""

from collections.abc import Mapping

from devlet.errors import InvalidInput
from devlet.objects.selectors import nodes as node_selectors
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

__all__ = ["is_usable_on", "unusable_on"]

_PATH = "status.allocation.nodeSelector"


def is_usable_on(claim: ResourceClaim, node: str, labels: Mapping[str, str] | None) -> bool:
    """Return True if the claim's devices can be used on the node, or if the claim is not allocated.

    A caller that does not know the node's labels passes None; then only the node's name is compared. Raises
    InvalidInput if the selector cannot be read."""
    allocation = claim.status.allocation
    if allocation is None or allocation.node_selector is None:
        return True
    return node_selectors.parsed(allocation.node_selector, _PATH).matches_node(node, labels)


def unusable_on(claim: ResourceClaim, node: str, labels: Mapping[str, str] | None) -> str:
    """Return why the claim's devices cannot be used on the node, or an empty string if they can."""
    try:
        if is_usable_on(claim, node, labels):
            return ""
    except InvalidInput as e:
        return f"ResourceClaim {claim.name}: {e}"
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation else None
    where = _described(selector) if selector else ""
    return f"the devices of ResourceClaim {claim.name} cannot be used on node {node}: its allocation requires {where}"


def _described(selector: NodeSelector) -> str:
    return " or ".join(map(_term, selector.node_selector_terms)) or "a node selector without terms"


def _term(term: NodeSelectorTerm) -> str:
    requirements = (*term.match_fields, *term.match_expressions)
    return " and ".join(map(_requirement, requirements)) or "a term without requirements"


def _requirement(one: NodeSelectorRequirement) -> str:
    values = f" [{', '.join(one.values)}]" if one.values else ""
    return f"{one.key} {one.operator}{values}"
