"""Node selectors: the nodes that a slice, a device, an allocation or a pod's node affinity is for.

Terms are alternatives; all requirements of a term must hold. A term without requirements selects no node, and neither
does a selector without terms. This is the opposite of label selectors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.selectors.labels import LabelSelector, Operator, expression_requirement
from devlet.objects.types import node

_OPERATORS: dict[str, Operator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}
_FIELD_OPERATORS: Final = ("In", "NotIn")


@dataclass(frozen=True, slots=True)
class NameRequirement:
    """A condition on the node's `metadata.name`, the only field that can be selected."""

    name: str
    equal: bool

    def matches(self, name: str) -> bool:
        return (name == self.name) == self.equal


@dataclass(frozen=True, slots=True)
class Term:
    labels: LabelSelector
    names: tuple[NameRequirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str] | None) -> bool:
        if not all(requirement.matches(name) for requirement in self.names):
            return False
        return labels is None or self.labels.matches(labels)


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """A node selector, without terms that select nothing."""

    terms: tuple[Term, ...]

    def matches(self, node: Document) -> bool:
        metadata = node.get("metadata") or {}
        return self.matches_node(metadata.get("name") or "", metadata.get("labels") or {})

    def matches_node(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Return True if a term matches. Without labels, only the node's name is compared."""
        return any(term.matches(name, labels) for term in self.terms)


def parse(document: object, path: str = "") -> NodeSelector:
    """Parse a NodeSelector document; `path` is its place, for errors."""
    prefix = f"{path}." if path else ""
    terms = _list(_object(document, path or "nodeSelector").get("nodeSelectorTerms"), f"{prefix}nodeSelectorTerms")
    parsed = [parse_term(term, f"{prefix}nodeSelectorTerms[{i}]") for i, term in enumerate(terms)]
    return NodeSelector(tuple(term for term in parsed if term))


@lru_cache(4096)
def parsed(selector: node.NodeSelector, path: str = "") -> NodeSelector:
    """Parse a selector of a typed view. Results are cached, because the same few selectors are matched against many
    nodes."""
    return parse(msgspec.json.decode(msgspec.json.encode(selector)), path)


def parse_term(document: object, path: str) -> Term | None:
    """Parse one NodeSelectorTerm; None if it has no requirements and so selects nothing."""
    term = _object(document, path)
    expressions = _list(term.get("matchExpressions"), f"{path}.matchExpressions")
    fields = _list(term.get("matchFields"), f"{path}.matchFields")
    if not expressions and not fields:
        return None
    labels = [
        expression_requirement(expression, _OPERATORS, f"{path}.matchExpressions[{i}]")
        for i, expression in enumerate(expressions)
    ]
    names = [_name_requirement(field, f"{path}.matchFields[{i}]") for i, field in enumerate(fields)]
    return Term(LabelSelector(tuple(labels)), tuple(names))


def _name_requirement(document: object, path: str) -> NameRequirement:
    field = _object(document, path)
    if field.get("key") != "metadata.name":
        raise InvalidInput(f'{path}.key: Invalid value: "{field.get("key", "")}": not a valid field selector key')
    operator = field.get("operator", "")
    if operator not in _FIELD_OPERATORS:
        raise InvalidInput(f'{path}.operator: Unsupported value: "{operator}": supported values: "In", "NotIn"')
    values = _list(field.get("values"), f"{path}.values")
    if len(values) != 1 or not isinstance(values[0], str):
        raise InvalidInput(f"{path}.values: Invalid value: must have one element")
    return NameRequirement(values[0], operator == "In")


def _object(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{path}: Invalid value: must be an object")
    return value


def _list(value: object, path: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"{path}: Invalid value: must be a list")
    return value
