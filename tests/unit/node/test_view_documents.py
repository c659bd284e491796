from datetime import UTC, datetime
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from devlet.node.view_documents import by_name, escaped, moment


def test_documents_are_sorted_by_namespace_and_natural_name() -> None:
    names = [("b", "x1"), ("a", "x10"), ("a", "x2"), ("", "z")]
    made = [{"metadata": {"name": name, "namespace": namespace}} for namespace, name in names]
    assert [each["metadata"]["name"] for each in by_name(made)] == ["z", "x2", "x10", "x1"]


def test_a_moment_may_be_unknown() -> None:
    assert moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05Z"
    assert moment(None) is None


@given(text=st.text())
def test_escaping_can_be_undone(text: str) -> None:
    found = escaped(text)
    assert unquote(found.replace("~", "%")) == text
    assert not set("/%?# ") & set(found)
