"""A Hypothesis strategy for allocation problems."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from devlet.objects.documents import Document
from tests.support.problems.generator import THEMES, random_problem

__all__ = ["problems"]


def problems(themes: Sequence[str] = THEMES) -> SearchStrategy[Document]:
    """Draw nodes, slices, classes and claims that fit together.

    Some themes, such as `errors` and `pools`, are wrong on purpose. A failing test shrinks to few themes."""
    chosen = st.lists(st.sampled_from(themes), unique=True)
    return st.builds(random_problem, st.integers(0, 2**32), chosen)
