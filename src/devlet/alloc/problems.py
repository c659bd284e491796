"""Allocation problems as documents: nodes, classes, slices and claims, with the answer for each node.

The format is the one in which the reference's answers are recorded. Share IDs are random, so answers only name devices
and say whether a share was created. `results` has the complete allocations.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from devlet.alloc.allocator import Allocator, NoFit
from devlet.alloc.features import Features, Rules
from devlet.alloc.inventory import Inventory
from devlet.alloc.results import allocation_documents
from devlet.alloc.search import Limits
from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.slice import ResourceSlice

__all__ = ["Problem", "answer_problem", "read_problem", "solve_problem"]

SHARE_ID = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Problem:
    name: str
    mode: str
    nodes: tuple[Node, ...]
    claims: tuple[ResourceClaim, ...]
    inventory: Inventory
    features: Features


def read_problem(document: Any) -> Problem:
    """Parse a problem. Raises InvalidInput that names the problem and the error in it."""
    if not isinstance(document, dict):
        raise InvalidInput(f"a problem must be an object with nodes, classes, slices and claims, not {document!r:.80}")
    name = document.get("name", "")
    try:
        slices = _views(document, "slices", ResourceSlice)
        classes = _views(document, "classes", DeviceClass)
        _check_names("slices", slices)
        _check_names("classes", classes)
        inventory = Inventory(slices, classes)
        for i, claim in enumerate(_views(document, "allocated", ResourceClaim)):
            _hold(inventory, claim, i)
        return Problem(
            name,
            document.get("mode", ""),
            tuple(_views(document, "nodes", Node)),
            tuple(_views(document, "claims", ResourceClaim)),
            inventory,
            _features(document.get("features") or {}),
        )
    except (InvalidInput, AttributeError, TypeError) as e:
        raise InvalidInput(f"problem {name!r}: {e}") from e


def _check_names(key: str, objects: Sequence[ResourceSlice] | Sequence[DeviceClass]) -> None:
    for name, count in Counter(each.metadata.name for each in objects).items():
        if count > 1:
            raise InvalidInput(f"{key}: {count} of them are named {name!r}; names must be unique")


def _hold(inventory: Inventory, claim: ResourceClaim, index: int) -> None:
    """Record what the claims hold. Claims may share a name, because only their devices matter."""
    namespace, name = claim.metadata.namespace, claim.metadata.name
    inventory.hold_devices(namespace, f"{name} (#{index})" if inventory.has(namespace, name) else name, claim.results)


def _features(gates: Any) -> Features:
    """Parse feature names. If all names begin with `-`, those features are turned off; otherwise all features not named
    are."""
    if isinstance(gates, dict):
        return Features.named(gates)
    if not isinstance(gates, list) or not all(isinstance(name, str) for name in gates):
        raise InvalidInput(f"features must be a list of names or an object with true and false, not {gates!r:.80}")
    names = {name.removeprefix("-"): not name.startswith("-") for name in gates}
    if any(names.values()):
        names = {**dict.fromkeys(Features.names(), False), **names}
    return Features.named(names)


def _views(document: Document, key: str, type_: type[Any]) -> list[Any]:
    found = document.get(key) or []
    if not isinstance(found, list):
        raise InvalidInput(f"{key} must be a list, not {found!r:.80}")
    return [_view(key, i, each, type_) for i, each in enumerate(found)]


def _view(key: str, index: int, document: Document, type_: type[Any]) -> Any:
    try:
        return msgspec.convert(document, type_)
    except msgspec.ValidationError:
        try:
            return msgspec.convert(_without_nulls(document), type_)
        except msgspec.ValidationError as e:
            raise InvalidInput(f"{key}[{index}]: {e}") from e


def _without_nulls(value: Any) -> Any:
    """Drop nulls: Go treats null like an absent field."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def solve_problem(
    document: Document,
    *,
    reference_compatible: bool = True,
    rules: Rules | None = None,
    limits: Callable[[], Limits] = Limits,
) -> list[Document]:
    """Solve a problem document and return one answer per node. `limits` are created for each."""
    chosen = rules or (Rules.reference() if reference_compatible else Rules())
    return answer_problem(read_problem(document), chosen, limits)


def answer_problem(problem: Problem, rules: Rules, limits: Callable[[], Limits] = Limits) -> list[Document]:
    """Solve a problem that was parsed already."""
    allocator = Allocator(problem.inventory, problem.features, rules)
    return [_answer(allocator, node, problem.claims, limits()) for node in problem.nodes]


def _answer(allocator: Allocator, node: Node, claims: Sequence[ResourceClaim], limits: Limits) -> Document:
    answer: Document = {"node": node.name}
    try:
        outcome = allocator.allocate(node, claims, limits)
        if isinstance(outcome, NoFit):
            return answer | {"outcome": "no-fit"} | ({"error": outcome.reason} if outcome.reason else {})
        results = allocation_documents(outcome, allocator.features, allocator.rules, lambda: SHARE_ID)
    except InvalidInput as e:
        return answer | {"outcome": "error", "error": str(e)}
    return answer | {"outcome": "fit", "allocations": _allocations(results), "results": results}


def _allocations(results: Sequence[Document]) -> list[list[Document]]:
    return [[_brief(result) for result in each["devices"].get("results", [])] for each in results]


def _brief(result: Document) -> Document:
    kept = ("request", "driver", "pool", "device", "adminAccess", "consumedCapacity")
    brief = {key: result[key] for key in kept if key in result}
    return brief | ({"shared": True} if "shareID" in result else {})
