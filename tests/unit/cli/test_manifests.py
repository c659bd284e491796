from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cli import manifests
from devlet.cli.manifests import Manifest, parse, read
from devlet.errors import InvalidInput

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\n"


def names(text: str) -> list[str]:
    return [manifest.name for manifest in parse(text.encode(), "f")]


def test_several_documents_and_lists_are_flattened() -> None:
    items = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n"
    typed = "apiVersion: v1\nkind: PodList\nitems:\n- {metadata: {name: c}}\n"
    found = list(parse(f"---\n{POD}---\n\n---\n{items}---\n{typed}".encode(), "f.yaml"))
    assert [(m.kind, m.name) for m in found] == [("Pod", "NAME"), ("Pod", "b"), ("Pod", "c")]
    assert found[2].origin == "f.yaml, document 4, items[0]"


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("12", 12),
        ("-3", -3),
        ("0x1F", 31),
        ("0755", 493),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("~", None),
        ("'12'", "12"),
        ("8Gi", "8Gi"),
    ],
)
def test_scalars_are_what_kubernetes_reads(yaml: str, value: object) -> None:
    [manifest] = parse(f"{POD}value: {yaml}\n".encode(), "f")
    assert manifest.document["value"] == value
    assert type(manifest.document["value"]) is type(value)


def test_keys_are_texts() -> None:
    [manifest] = parse(f"{POD}data: {{1: a, true: b, 1.50: c}}\n".encode(), "f")
    assert manifest.document["data"] == {"1": "a", "true": "b", "1.50": "c"}


def test_anchors_and_merges_are_understood() -> None:
    [manifest] = parse(f"{POD}a: &a {{x: 1, y: 2}}\nb: {{<<: *a, y: 3}}\nc: *a\n".encode(), "f")
    assert (manifest.document["b"], manifest.document["c"]) == ({"x": 1, "y": 3}, {"x": 1, "y": 2})


def test_json_may_have_tabs() -> None:
    assert names('{"apiVersion": "v1",\t"kind": "Pod",\n\t"metadata": {"name": "j"}}') == ["j"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "f:2: invalid YAML|f:1: invalid YAML"),
        ("- 1", "document 1: not a Kubernetes object"),
        ("kind: Pod", "apiVersion is missing"),
        ("apiVersion: v1", "kind is missing"),
        ("{apiVersion: v1, kind: Pod}", "Pod: metadata.name is missing"),
        (f"{POD}---\n{{apiVersion: v1, kind: Pod, metadata: []}}", "document 2"),
        (f"{POD}x: .nan", "JSON cannot represent"),
        (f"{POD}x: !!binary aGk=", "JSON cannot represent"),
        (f"{POD}x: !!python/object:os.system {{}}", "invalid YAML"),
        (f"{POD}x: {{[1]: 2}}", "f:4: invalid YAML: a key is not a string"),
        (f"{POD}x: {{a: 1, a: 2}}", 'f:4: invalid YAML: duplicate key "a"'),
        ("[" * 3000, "nested too deeply|invalid YAML"),
        ("\x00", "invalid YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        names(text)


def test_aliases_cannot_grow_without_limit() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(InvalidInput, match="more than 2000000 values"):
        names(POD + "\n".join(lines))


@given(st.binary(max_size=60))
def test_any_bytes_are_objects_or_an_error(content: bytes) -> None:
    try:
        assert all(isinstance(m, Manifest) for m in parse(content, "f"))
    except InvalidInput as e:
        assert str(e).startswith("f")


def test_directories_are_read_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "ignored.txt", "deep/d.yaml"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(POD.replace("NAME", file.stem))
    assert [m.name for m in read([str(tmp_path)])] == ["a", "b", "c"]
    assert [m.name for m in read([str(tmp_path)], recursive=True)] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("nope.yaml", "No such file"),
        ("https://example.com/x.yaml", "download the file first"),
        ("", "no .yaml, .yml, .json file"),
    ],
)
def test_what_cannot_be_read_is_said(
    source: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=problem):
        read([source or str(tmp_path)])


def test_limits_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MAX_BYTES", 10)
    (tmp_path / "big.yaml").write_text(POD)
    with pytest.raises(InvalidInput, match="larger than 10 bytes"):
        read([str(tmp_path / "big.yaml")])
    (tmp_path / "empty.yaml").write_text("---\n")
    with pytest.raises(InvalidInput, match="no objects found in"):
        read([str(tmp_path / "empty.yaml")])


def test_documents_of_any_kind_can_be_read_with_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("device: {driver: a}\n---\n---\n[1]\n")
    place = str(tmp_path / "a.yaml")
    found = list(manifests.documents([place]))
    assert found == [({"device": {"driver": "a"}}, f"{place}, document 1"), ([1], f"{place}, document 3")]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert [m.name for m in manifests.objects_in({"kind": "List", "items": [pod]}, place)] == ["p"]
