import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from devlet.errors import InvalidInput
from devlet.runtime.cdi.codec import decode, encode
from devlet.runtime.cdi.spec import ContainerEdits, Device, DeviceNode, Hook, IntelRdt, Mount, NetDevice, Spec
from devlet.runtime.cdi.versions import minimum

GOLDEN = Path(__file__).parents[3] / "golden" / "cdi" / "specs.json"
CASES = json.loads(GOLDEN.read_text())["cases"]
DOCUMENT = {"cdiVersion": "0.3.0", "kind": "v/c", "devices": [{"name": "a", "containerEdits": {"env": ["A=1"]}}]}
BOMB = b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in b"bcdefgh")


def yaml_of(edits: str, name: str = "a") -> Spec:
    return decode(f"cdiVersion: 0.7.0\nkind: v/c\ndevices: [{{name: {name}, containerEdits: {edits}}}]".encode())


@pytest.mark.spec("DN-7.3.5", "DN-7.3.6")
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_a_spec_is_accepted_exactly_if_runtimes_accept_it(case: dict[str, Any]) -> None:
    if case["accepted"]:
        assert minimum(decode(case["text"].encode())) == case["minimum"]
    else:
        with pytest.raises(InvalidInput):
            decode(case["text"].encode())


@pytest.mark.spec("DN-7.3.5")
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"surplus": 1}, "unknown field `surplus`"),
        ({"devices": [{"name": "a", "containerEdits": {"evn": []}}]}, r"`evn` - at `devices\[0\]\.containerEdits`"),
        ({"devices": [{"name": "a", "containerEdits": {"env": ["A"]}}]}, r"devices\[0\].containerEdits.env\[0\]: "),
        ({"cdiVersion": "9"}, "cdiVersion: unknown version '9'"),
        ({"kind": "v\0/c"}, "contains a NUL character"),
        ({"kind": "\ud800/c"}, "is not valid Unicode"),
    ],
)
def test_an_error_names_the_place(change: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        decode(json.dumps(DOCUMENT | change).encode())


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "Expected `object`, got `null`"),
        (b"{\n]", "line 2: not JSON"),
        (b"a:\n  - b\n c", "line 3: not YAML"),
        (b"\xff\xfe\xff", "."),
        (b"[" * 100_000, "nested more than 100 levels deep"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"a: &a [1,1,1,1,1,1,1,1,1]\n" + BOMB, "more than 500000 values"),
        (b"a: &a [*a]", "more than 500000 values"),
        (b"a: 1\n---\nb: 1\n", "another document"),
        (b"a: !!python/object:os.system {}", "."),
        (b'{"kind": 1, "kind": 2}', "'kind' occurs twice"),
    ],
)
def test_something_that_is_not_a_spec_is_refused(content: bytes, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        decode(content)


def test_only_the_first_of_many_problems_are_listed() -> None:
    edits = {"env": [str(i) for i in range(1000)]}
    with pytest.raises(InvalidInput, match=r"env\[9\]: must be NAME=value; and more$"):
        decode(json.dumps(DOCUMENT | {"containerEdits": edits}).encode())


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("0666", 0o666),
        ("0o666", 0o666),
        ("438", 438),
        ("0x1b6", 438),
        ("0", 0),
        ("08", 8),
        ("1_0", 10),
        ("0b11", 3),
        ("1e2", 100),
    ],
)
def test_numbers_in_yaml_are_parsed_as_in_go(text: str, mode: int) -> None:
    (device,) = yaml_of(f"{{deviceNodes: [{{path: /dev/x, fileMode: {text}}}]}}").devices
    assert device.container_edits.device_nodes == (DeviceNode("/dev/x", file_mode=mode),)


@pytest.mark.parametrize("name", ["7", "1:30", "2024-01-01", "true", "1.5"])
def test_a_string_in_yaml_needs_no_quotes(name: str) -> None:
    assert yaml_of("{env: [A=1]}", name).devices[0].name == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("y", "true"),
        ("off", "false"),
        ("010", "8"),
        ("08", "8"),
        ("1.0", "1"),
        (".5", "0.5"),
        ("0X1f", "31"),
        ("'010'", "010"),
    ],
)
def test_an_unquoted_string_that_looks_like_another_type_is_that_type(text: str, name: str) -> None:
    assert yaml_of("{env: [A=1]}", text).devices[0].name == name


@pytest.mark.parametrize("number", ["1" * 400, "9" * 5000, "1e400", "1.5", "0x" + "f" * 5000, "-1e30", "NaN"])
def test_a_number_outside_of_the_format_is_refused(number: str) -> None:
    for major in (number, f'"{number}"'):
        with pytest.raises(InvalidInput):
            yaml_of(f"{{deviceNodes: [{{path: /dev/x, major: {major}}}]}}")
        with pytest.raises(InvalidInput):
            decode(
                json.dumps(DOCUMENT | {"containerEdits": {"deviceNodes": [{"path": "/x", "major": 7}]}})
                .replace("7", major)
                .encode()
            )


def test_an_integer_may_be_written_with_a_decimal_point() -> None:
    spec = decode(json.dumps(DOCUMENT | {"containerEdits": {"deviceNodes": [{"path": "/x", "major": 7.0}]}}).encode())
    assert spec.container_edits.device_nodes == (DeviceNode("/x", major=7),)


def test_aliases_in_yaml_are_supported() -> None:
    content = (
        b"cdiVersion: 0.3.0\nkind: v/c\ncontainerEdits: &e {env: [A=1]}\ndevices: [{name: a, containerEdits: *e}]\n"
    )
    spec = decode(content)
    assert spec.devices[0].container_edits == spec.container_edits == ContainerEdits(env=("A=1",))


def test_fields_of_older_versions_are_decoded() -> None:
    spec = yaml_of("{intelRdt: {enableCMT: true, enableMBM: false}}")
    assert spec.devices[0].container_edits.intel_rdt == IntelRdt(enable_cmt=True, enable_mbm=False)


def test_an_invalid_spec_is_not_encoded() -> None:
    with pytest.raises(InvalidInput, match="devices: must have at least one"):
        encode(Spec("0.3.0", "v/c", ()))


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
NUMBERS = st.integers(0, 2**32 - 1)
ENV = st.tuples() | st.tuples(TEXTS.map(lambda text: f"X{text}=1"))
NODES = st.builds(
    DeviceNode,
    path=TEXTS,
    host_path=TEXTS,
    type=st.sampled_from(["", "b", "c", "u", "p"]),
    major=st.integers(-(2**63), 2**63 - 1),
    minor=NUMBERS,
    file_mode=st.none() | NUMBERS,
    permissions=st.sampled_from(["", "r", "none"]),
    uid=st.none() | NUMBERS,
    gid=st.none() | NUMBERS,
)
EDITS = st.builds(
    ContainerEdits,
    env=ENV,
    device_nodes=st.tuples() | st.tuples(NODES),
    net_devices=st.tuples() | st.tuples(st.builds(NetDevice, TEXTS, TEXTS)),
    hooks=st.tuples()
    | st.tuples(st.builds(Hook, st.just("prestart"), TEXTS, st.tuples(TEXTS), ENV, st.none() | st.integers(1, 9))),
    mounts=st.tuples() | st.tuples(st.builds(Mount, TEXTS, TEXTS, st.tuples(TEXTS), TEXTS)),
    intel_rdt=st.none() | st.builds(IntelRdt, st.just("c"), TEXTS, TEXTS, st.none() | st.tuples(TEXTS), st.booleans()),
    additional_gids=st.tuples() | st.tuples(NUMBERS),
)
DEVICE = st.builds(Device, st.just("a"), EDITS.filter(bool), st.dictionaries(TEXTS, TEXTS, max_size=2))
SPECS = st.builds(
    Spec, st.just(""), st.just("v/c"), st.tuples(DEVICE), EDITS, st.dictionaries(TEXTS, TEXTS, max_size=2)
)


@pytest.mark.spec("DN-7.3.7")
@given(SPECS)
def test_a_spec_with_its_lowest_version_is_decoded_again(spec: Spec) -> None:
    spec = structs.replace(spec, cdi_version=minimum(spec))
    assert decode(encode(spec)) == spec


@given(st.binary(max_size=64) | st.text(alphabet="{}[]:,-\n \"'&*!a0", max_size=40).map(str.encode))
def test_any_input_is_decoded_or_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode(content)
