import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.remote.kubeconfig_file import MAX_BYTES, File, parse, read
from devlet.errors import InvalidInput

PATH = Path("config")


def test_yaml_and_json_are_the_same() -> None:
    yaml = b"kind: Config\ncurrent-context: a\nusers:\n- name: u\n  user: {tokenFile: f, as-groups: [g]}\n"
    json = b'{"current-context": "a", "users": [{"name": "u", "user": {"tokenFile": "f", "as-groups": ["g"]}}]}'
    assert parse(yaml, PATH) == parse(json, PATH)
    assert parse(yaml, PATH).users[0].user.token_file == "f"


def test_an_empty_file_says_nothing() -> None:
    assert parse(b"", PATH) == File()


def test_null_is_the_same_as_absent() -> None:
    text = b"clusters: null\nusers: [{name: u, user: {exec: {command: c, args: null, env: null}}}]\npreferences: {}\n"
    plugin = parse(text, PATH).users[0].user.exec
    assert plugin is not None and (plugin.args, plugin.env) == ([], [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a: [", r"config:1: not YAML"),
        (b"[]", r"config: Expected `object`"),
        (b"users: [{name: u, user: {token: 12345}}]", r"Expected `str`, got `int` - at `\$.users\[0\].user.token`"),
        (b"kind: Pod", "kind 'Pod', expected Config"),
        (b"a: &x 1\nb: *x", "aliases are not supported"),
        (b"a: !!python/object:os.system {}", "not YAML"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"[" * 5000, "not YAML"),
        (b"when: 2024-99-99", "not YAML"),
    ],
)
def test_an_invalid_kubeconfig_is_reported_with_place_and_reason(text: bytes, expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        parse(text, PATH)


def test_no_error_shows_a_secret() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(b"users: [{name: u, user: {token: [hunter2]}}]", PATH)
    assert "hunter2" not in str(refused.value)


@given(st.binary(max_size=100) | st.text(max_size=100).map(str.encode))
def test_nothing_in_a_file_crashes(text: bytes) -> None:
    try:
        assert isinstance(parse(text, PATH), File)
    except InvalidInput as e:
        assert str(e).startswith("config")


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]))


@given(texts, texts, st.lists(texts))
def test_texts_are_read_as_they_were_written(context: str, token: str, groups: list[str]) -> None:
    user = {"name": "u", "user": {"token": token, "as-groups": groups}}
    found = parse(json.dumps({"current-context": context, "users": [user]}).encode(), PATH)
    assert (found.current_context, found.users[0].user.token) == (context, token)
    assert found.users[0].user.as_groups == groups


def test_a_file_has_a_size(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(InvalidInput, match="larger than"):
        read(path)
    with pytest.raises(InvalidInput, match="No such file"):
        read(tmp_path / "none")
