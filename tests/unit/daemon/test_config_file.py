from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.daemon.config_file import parse, read
from devlet.errors import InvalidInput

HEADER = "apiVersion: devlet.dev/v1alpha1\nkind: Configuration\n"
KNOWN = ("root", "nodeName", "timeouts.stop", "timeouts.historyAge")


def test_settings_come_by_dotted_name_with_their_line() -> None:
    settings = parse(HEADER + "root: /r\ntimeouts:\n  stop: 2s\n", "c.yaml", KNOWN)
    assert {name: (s.value, s.place) for name, s in settings.items()} == {
        "root": ("/r", "c.yaml:3"),
        "timeouts.stop": ("2s", "c.yaml:5"),
    }


HOOKS = """
hooks:
- name: wipe
  command: [wipe, --all]
  env: {A: "1"}
-
  name: second
"""


def test_a_list_has_plain_values_and_the_line_of_each_entry() -> None:
    setting = parse(HEADER + HOOKS, "c.yaml", [*KNOWN, "hooks"], ["hooks"])["hooks"]
    assert [(item.place, item.value) for item in setting.value] == [
        ("c.yaml:5", {"name": "wipe", "command": ["wipe", "--all"], "env": {"A": "1"}}),
        ("c.yaml:9", {"name": "second"}),
    ]


def test_a_mapping_has_the_line_of_each_entry_and_keys_with_dots() -> None:
    text = "drivers:\n  gpu.example.com: v1alpha3\n  other: true\nroot: /r\n"
    settings = parse(HEADER + text, "c.yaml", [*KNOWN, "drivers"], (), ["drivers"])
    assert {name: (entry.value, entry.place) for name, entry in settings["drivers"].value.items()} == {
        "gpu.example.com": ("v1alpha3", "c.yaml:4"),
        "other": (True, "c.yaml:5"),
    }
    assert settings["root"].value == "/r"
    assert parse(HEADER + "drivers: {}", "c.yaml", ["drivers"], (), ["drivers"])["drivers"].value == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drivers: []", "c.yaml:3: drivers must be a mapping of keys"),
        ("drivers:", "c.yaml:3: drivers must be a mapping of keys"),
        ("drivers:\n  a: [b]", "c.yaml:4: drivers.a must be a single value"),
        ("drivers:\n  a:", "c.yaml:4: drivers.a has no value"),
        ("drivers:\n  a: b\n  a: c", "c.yaml:5: drivers.a is set twice"),
        ("drivers:\n  [a]: b", "c.yaml:4: a key must be a string"),
        ("drivers: &x\n  a: *x", "drivers.a must be a single value"),
    ],
)
def test_a_bad_entry_of_a_mapping_is_refused_with_place_and_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(HEADER + text, "c.yaml", [*KNOWN, "drivers"], (), ["drivers"])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hooks: {}", "c.yaml:3: hooks must be a list"),
        ("hooks:", "c.yaml:3: hooks must be a list"),
        ("hooks: [a]", "c.yaml:3: hooks[0] must be a mapping of keys"),
        ("hooks:\n- {}\n- []", "c.yaml:5: hooks[1] must be a mapping of keys"),
        ("hooks:\n- name: a\n  name: b", "c.yaml:5: hooks[0].name is set twice"),
        ("hooks:\n- name:", "c.yaml:4: hooks[0].name has no value"),
        ("hooks:\n- list: [a, 2025-99-99]", "c.yaml:4: hooks[0].list[1]: '2025-99-99' is not a value"),
        ("hooks:\n- ? [a]\n  : b", "c.yaml:4: a key must be a string"),
        ("hooks:\n- a: &x [1]\n  b: *x", "c.yaml:4: hooks[0].b: aliases are not supported here"),
        ("hooks:\n- &x\n  a: *x", "hooks[0].a: aliases are not supported here"),
        ("hooks:\n- a: " + "[" * 20 + "]" * 20, "nested too deeply"),
    ],
)
def test_a_bad_entry_of_a_list_is_refused_with_place_and_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(HEADER + text, "c.yaml", [*KNOWN, "hooks"], ["hooks"])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "c.yaml: empty; expected apiVersion: devlet.dev/v1alpha1"),
        ("root: /r", "c.yaml: apiVersion is missing"),
        ("apiVersion: v1\nkind: Configuration", "c.yaml:1: apiVersion is 'v1'; expected devlet.dev/v1alpha1"),
        ("apiVersion: devlet.dev/v1alpha1\nkind: Pod", "c.yaml:2: kind is 'Pod'; expected Configuration"),
        (HEADER + "nodname: x", 'c.yaml:3: unknown key "nodname"; did you mean "nodeName"?'),
        (HEADER + "timeouts:\n  stopp: 1", 'c.yaml:4: unknown key "timeouts.stopp"; did you mean "timeouts.stop"?'),
        (HEADER + "root: /a\nroot: /b", "c.yaml:4: root is set twice"),
        (HEADER + "timeouts: 5", "c.yaml:3: timeouts must be a mapping of keys"),
        (HEADER + "root: [a]", "c.yaml:3: root must be a single value"),
        (HEADER + "root:", "c.yaml:3: root has no value"),
        (HEADER + "root: 2025-99-99T00:00:00Z", "c.yaml:3: root: '2025-99-99T00:00:00Z' is not a value"),
        (HEADER + "root: !!python/object:os.system x", "c.yaml:3: root:"),
        (HEADER + "? [a]\n: b", "c.yaml:3: a key must be a string"),
        (HEADER + "root: 'open", "not valid YAML"),
        ("- a", "c.yaml:1: the file must be a mapping of keys"),
        ("[" * 5000, "c.yaml: nested too deeply"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
    ],
)
def test_a_bad_file_is_refused_with_place_and_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text, "c.yaml", KNOWN)
    assert message in str(caught.value)


def test_aliases_are_not_expanded() -> None:
    bomb = HEADER + "root: /r\nnodeName: &a [x,x]\n" + "".join(f"k{i}: [*a, *a]\n" for i in range(3))
    with pytest.raises(InvalidInput, match="nodeName must be a single value"):
        parse(bomb, "c.yaml", KNOWN)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "gone", tmp_path):
        with pytest.raises(InvalidInput, match=str(path)):
            read(path, KNOWN)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read(tmp_path / "c", KNOWN)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"#" * 300_000)
    with pytest.raises(InvalidInput, match="larger than"):
        read(tmp_path / "c", KNOWN)


@given(st.text(max_size=100))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert set(parse(HEADER + text, "c.yaml", KNOWN, ["root"])) <= set(KNOWN)
    except InvalidInput as e:
        assert str(e).startswith("c.yaml")
