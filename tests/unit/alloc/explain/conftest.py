"""Problems in few words, and what is made of them."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain.standing import Scene, look
from devlet.alloc.problems import Problem, read_problem
from tests.support.allocation.shorthand import problem

Short = dict[str, Any]


@pytest.fixture
def read() -> Callable[..., Problem]:
    """A problem in the words of `tests.support.allocation.shorthand`; `nodes` are more nodes."""

    def make(nodes: tuple[str, ...] = (), **short: Any) -> Problem:
        document = problem({"case": "a case", **short})
        document["nodes"] += [{"metadata": {"name": name}} for name in nodes]
        return read_problem(document)

    return make


@pytest.fixture
def scene(read: Callable[..., Problem]) -> Callable[..., Scene]:
    """The first node of a problem, as its claims see it."""

    def make(**short: Any) -> Scene:
        found = read(**short)
        allocator = Allocator(found.inventory, found.features)
        return look(allocator, allocator.layout(found.nodes[0]), allocator.read(found.claims))

    return make
