from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.objects.json_path import MAX_LENGTH, linear_path, relaxed_path, template

DOCUMENT: dict[str, Any] = {
    "kind": "List",
    "items": [
        {"name": "a", "size": 1, "labels": {"x.y/z": "dots"}, "tags": ["p", "q"], "on": True},
        {"name": "b", "size": 2, "labels": {}, "tags": []},
        {"name": "c", "size": 3.5, "nested": {"name": "deep"}},
    ],
    "empty": None,
    "conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "False"}],
}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("plain", "plain"),
        ("{.kind}", "List"),
        ("{$.kind}", "List"),
        ("{@.kind}", "List"),
        ("{ .kind }", "List"),
        ("{.kind}: {.items[0].name}", "List: a"),
        ("{.nope}{.nope.more}{.kind.more}{.items[9].name}", ""),
        ("{.items[*].name}", "a b c"),
        ("{.items[-1].name}", "c"),
        ("{.items[-1:].name}", "c"),
        ("{.items[0:2].name}", "a b"),
        ("{.items[:2].name}", "a b"),
        ("{.items[::2].name}", "a c"),
        ("{.items[0,2].name}", "a c"),
        ("{.items[0]['name','size']}", "a 1"),
        ('{.items[0]["name"]}', "a"),
        (r"{.items[0].labels.x\.y/z}", "dots"),
        ("{.items[0].labels['x.y/z']}", "dots"),
        ("{.items[0].tags}", '["p","q"]'),
        ("{.items[0].labels}", '{"x.y/z":"dots"}'),
        ("{.items[*].size}", "1 2 3.5"),
        ("{.items[0].on}", "true"),
        ("{..name}", "a b c deep"),
        ("{.items[2]..name}", "c deep"),
        ("{.items[2].nested.*}", "deep"),
        ('{range .items[*]}{.name}={.size}{"\\n"}{end}', "a=1\nb=2\nc=3.5\n"),
        ("{range .items[*]}{range .tags[*]}{@}{','}{end}{end}", "p,q,"),
        ("{range .items[*]}[{.name}, {$.kind}] {end}", "[a, List] [b, List] [c, List] "),
        ("{range .nope[*]}x{end}", ""),
        ('{.conditions[?(@.type=="Ready")].status}', "True"),
        ("{.conditions[?(@.type != 'Ready')].type}", "Disk"),
        ("{.items[?(@.size>1)].name}", "b c"),
        ("{.items[?(@.size<=2)].name}", "a b"),
        ("{.items[?(@.size==3.5)].name}", "c"),
        ("{.items[?(@.on)].name}", "a"),
        ("{.items[?(@.on==true)].name}", "a"),
        ("{.items[?(@.nested.name=='deep')].name}", "c"),
        ("{.items[?(@.size<'x')].name}", ""),
        ("{.items[?(@.name==@.nested.name)].name}", ""),
        ("{\"a\\tb\"}{'c'}", "a\tbc"),
        ("{.empty}", ""),
        ("{.kind}{.kind}", "ListList"),
    ],
)
def test_a_template_prints_what_its_paths_find(text: str, printed: str) -> None:
    assert template(text).render(DOCUMENT) == printed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "expected a path"),
        ("{}{.a", "expected a path"),
        ("{.a", "expected a path"),
        ("{kind}", "expected a path"),
        ("{range .a[*]}", "{range} without {end}"),
        ("{end}", "{end} without {range}"),
        ("{.a[}", "expected an index"),
        ("{.a[0}", 'expected "]"'),
        ("{.a[::0]}", "step 0"),
        ("{.a['x}", "a quote that is not closed"),
        ("{.a[?(@.x==)]}", "expected a path"),
        ("{.a[?@.x]}", 'expected "("'),
        ("{..}", "expected a key after .."),
        ("{range .a}" * 17 + "{end}" * 17, "more than 16 nested ranges"),
        ("{.a" + "[?(@" * 1000, "more than 16 nested filters"),
        ("x" * (MAX_LENGTH + 1), "at most"),
    ],
)
def test_an_invalid_template_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        template(text)
    assert problem in str(raised.value)


@pytest.mark.parametrize("text", ["{.items[0].name}", ".items[0].name", "items[0].name", "$.items[0].name"])
def test_a_relaxed_path_may_leave_out_braces_and_the_first_dot(text: str) -> None:
    assert relaxed_path(text).find(DOCUMENT) == ["a"]


@pytest.mark.parametrize("text", ["", "{.a}{.b}", ".a b", "{.a} x"])
def test_an_invalid_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="JSONPath"):
        relaxed_path(text)


@given(st.text(alphabet="{}[]().@$*?'\"\\:,=!<> abrnged012-", max_size=30))
def test_every_text_is_a_template_or_an_error(text: str) -> None:
    try:
        assert isinstance(template(text).render(DOCUMENT), str)
    except InvalidInput as e:
        assert str(e).startswith("JSONPath")


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4), st.integers())
def test_quoted_keys_reach_any_key(keys: list[str], value: int) -> None:
    document: Any = value
    for key in reversed(keys):
        document = {key: document}
    quoted = "".join("['" + key.replace("\\", "\\\\").replace("'", "\\'") + "']" for key in keys)
    assert relaxed_path(quoted).find(document) == [value]


RESOURCE = {
    "spec": {"n": 3, "map": {"a.b": 1}, "list": [{"name": "x", "on": True}, {"name": "y", "on": False, "n": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Idle", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".spec.n", [3]),
        ("{.spec.n}", [3]),
        ("$.spec.n", [3]),
        (".spec.map['a.b']", [1]),
        ('.spec.map["a.b"]', [1]),
        (r".spec.map.a\.b", [1]),
        (".spec.list[0].name", ["x"]),
        (".spec.list[-1].name", ["y"]),
        (".spec.list[1:].name", ["y"]),
        (".spec.list[*].name", ["x", "y"]),
        (".spec.list.*.name", ["x", "y"]),
        (".spec.map.*", [1]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?( @.type != 'Ready' )].type", ["Idle"]),
        (".spec.list[?(@.on==true)].name", ["x"]),
        (".spec.list[?(@.n==2)].name", ["y"]),
        (".spec.list[?(@.n>1)].name", ["y"]),
        (".spec.list[7]", []),
        (".spec.absent.deeper", []),
        (".spec.n.deeper", []),
        (".spec.n[?(@.a==1)]", []),
        (".", [RESOURCE]),
    ],
)
def test_a_linear_path_finds_values(text: str, found: list[Any]) -> None:
    assert linear_path(text).find(RESOURCE) == found


@pytest.mark.parametrize("text", ["", "spec", ".a[", ".a[?(@.b", ".a['b'", "." * (MAX_LENGTH + 1)])
def test_an_invalid_linear_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        linear_path(text)


@pytest.mark.parametrize("text", ["..a", ".a[?(@..b==1)]", ".a[0,0]", ".a[?($.b==1)]", ".a[?(@.b==$.c)]"])
def test_a_linear_path_visits_no_value_twice(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not supported here"):
        linear_path(text)


@given(st.text(alphabet=st.sampled_from(".[]?(@=!'\"ab0-*\\ {}"), max_size=60))
def test_every_text_is_a_linear_path_or_an_error(text: str) -> None:
    try:
        found = linear_path(text).find(RESOURCE)
    except InvalidInput:
        found = []
    assert isinstance(found, list)
