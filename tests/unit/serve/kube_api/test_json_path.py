"""The paths of printer columns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.serve.kube_api.json_path import MAX_LENGTH, parse

DOCUMENT = {
    "spec": {"n": 3, "map": {"a.b": 1}, "list": [{"name": "x", "on": True}, {"name": "y", "on": False, "n": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Idle", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.n", [3]),
        ("{.spec.n}", [3]),
        ("$.spec.n", [3]),
        (".spec.map['a.b']", [1]),
        ('.spec.map["a.b"]', [1]),
        (r".spec.map.a\.b", [1]),
        (".spec.list[0].name", ["x"]),
        (".spec.list[-1].name", ["y"]),
        (".spec.list[*].name", ["x", "y"]),
        (".spec.list.*.name", ["x", "y"]),
        (".spec.map.*", [1]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?( @.type != 'Ready' )].type", ["Idle"]),
        (".spec.list[?(@.on==true)].name", ["x"]),
        (".spec.list[?(@.n==2)].name", ["y"]),
        (".spec.list[7]", []),
        (".spec.absent.deeper", []),
        (".spec.n.deeper", []),
        (".spec.n[?(@.a==1)]", []),
        ("", [DOCUMENT]),
    ],
)
def test_a_path_finds_values(path: str, found: list[Any]) -> None:
    assert parse(path)(DOCUMENT) == found


@pytest.mark.parametrize(
    "path", ["spec", "..a", ".a[", ".a[1:2]", ".a[?(@.b>1)]", ".a['b'", ".", "." * (MAX_LENGTH + 1)]
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        parse(path)


@given(st.text(alphabet=st.sampled_from(".[]?(@=!'\"ab0-*\\ {}"), max_size=60))
def test_no_text_is_a_surprise(path: str) -> None:
    try:
        found = parse(path)(DOCUMENT)
    except InvalidInput:
        found = []
    assert isinstance(found, list)
