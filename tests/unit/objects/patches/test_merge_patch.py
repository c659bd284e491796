from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects import documents
from devlet.objects.documents import Document
from devlet.objects.patches import merge_patch

# RFC 7386, appendix A: document, patch, result; without the rows whose result would not be an object.
RFC_EXAMPLES: list[tuple[Document, Document, Document]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({"a": "foo"}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({}, {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}),
]


@pytest.mark.spec("KA-3.7-merge")
@pytest.mark.parametrize(("document", "patch", "result"), RFC_EXAMPLES)
def test_every_example_of_the_rfc_comes_out(document: Document, patch: Document, result: Document) -> None:
    before = documents.copy(document), documents.copy(patch)
    assert merge_patch.apply(document, patch) == result
    assert (document, patch) == before


@pytest.mark.spec("KA-3.7-merge")
@pytest.mark.parametrize("patch", [None, [], [{"a": 1}], "x", 1])
def test_a_patch_that_is_not_an_object_is_a_bad_request(patch: Any) -> None:
    with pytest.raises(BadRequest, match="must be an object"):
        merge_patch.apply({"a": 1}, patch)


def test_a_patch_that_is_too_deep_is_a_bad_request() -> None:
    patch: Document = {}
    for _ in range(5000):
        patch = {"a": patch}
    with pytest.raises(BadRequest, match="levels deep"):
        merge_patch.apply({}, patch)


values = st.recursive(
    st.booleans() | st.integers(0, 3) | st.text("ab", max_size=1),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@settings(deadline=None)
@given(objects, objects)
def test_a_patch_without_nulls_shows_up_completely_and_twice_is_the_same_as_once(
    document: Document, patch: Document
) -> None:
    before = documents.copy(document)
    once = merge_patch.apply(document, patch)
    assert merge_patch.apply(once, patch) == once
    assert merge_patch.apply(patch, once) == once
    assert document == before


@settings(deadline=None)
@given(objects)
def test_a_document_is_the_patch_that_does_nothing_to_it(document: Document) -> None:
    assert merge_patch.apply(document, document) == document
    assert merge_patch.apply(document, {}) == document
    assert merge_patch.apply(document, dict.fromkeys(document)) == {}
