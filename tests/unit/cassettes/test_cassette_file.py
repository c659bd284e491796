import json
import random
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from devlet.cassettes import cassette_file, library
from devlet.cassettes.cassette import Cassette, Driver, Metadata, Plugin, PluginDevice, Pool
from devlet.cassettes.cassette_file import MAX_BYTES, MAX_VALUES, check_events, decode, encode, read
from devlet.cassettes.rules import MAX_DEVICES
from devlet.errors import InvalidInput

HEAD = "apiVersion: devlet.dev/v1alpha1\nkind: Cassette\nnode: n1\n"


@pytest.mark.parametrize("name", library.names())
def test_what_is_written_is_read_again(name: str) -> None:
    found = library.shipped(name)
    assert decode(encode(found)) == found
    assert decode(encode(found, as_json=True)) == found


def test_the_head_comes_first() -> None:
    text = encode(library.shipped("led")).decode()
    assert [line.partition(":")[0] for line in text.splitlines()[:3]] == ["apiVersion", "kind", "metadata"]
    assert list(json.loads(encode(Cassette("n1"), as_json=True))) == ["apiVersion", "kind", "node"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not a cassette: expected an object with apiVersion devlet.dev/v1alpha1 and kind Cassette"),
        (b"[]", "not a cassette: expected an object"),
        (b"{", "neither YAML nor JSON"),
        (b"a: [", "line 2: neither YAML nor JSON"),
        (b"a: b\na: c", "line 2: neither YAML nor JSON: a key is a duplicate, or not a string"),
        (
            b'{"kind": "Cassette", "kind": "Pod"}',
            "line 1: neither YAML nor JSON: a key is a duplicate, or not a string",
        ),
        (b"\xff\xfe\x00", "neither YAML nor JSON"),
        (b"a: &x [1]\nb: *x", "aliases are not allowed: *x"),
        (b"[" * 60_000, "nested more than 50 levels deep"),
        (b"kind: Pod\napiVersion: v1", "not a cassette: kind is 'Pod', expected 'Cassette'"),
        (b"kind: Cassette\napiVersion: devlet.dev/v2", "apiVersion 'devlet.dev/v2' is not supported, expected"),
        (b"kind: Cassette\napiVersion: devlet.dev/v1alpha1", "missing required field `node`"),
        (HEAD.encode() + b"colour: red", "unknown field `colour`"),
        (HEAD.encode() + b"drivers: 3", "Expected `array`, got `int` - at `drivers`"),
        (HEAD.encode() + b"drivers: [{name: ../../etc/passwd}]", "drivers[0].name: '../../etc/passwd':"),
        (HEAD.encode() + b"plugins: [{resource: /dev/sda}]", "plugins[0].resource: '/dev/sda' must be a valid"),
        (HEAD.encode() + b"plugins: [{resource: !!python/name:os.system x}]", "neither YAML nor JSON"),
    ],
)
def test_an_invalid_cassette_is_rejected_with_a_reason(content: bytes, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode(content)
    assert told in str(refused.value)


def test_a_damaged_file_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "cut.yaml"
    path.write_bytes(encode(library.shipped("a100-mig"))[:20_000])
    with pytest.raises(InvalidInput, match=r"cut\.yaml: "):
        read(path)
    with pytest.raises(InvalidInput, match=r"none\.yaml: No such file"):
        read(tmp_path / "none.yaml")
    with pytest.raises(InvalidInput, match="Is a directory"):
        read(tmp_path)


def test_what_is_too_large_is_not_even_parsed(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(bytes(MAX_BYTES + 1))
    with pytest.raises(InvalidInput, match="larger than 64 MiB, the limit for a cassette"):
        read(path)
    path.write_bytes(random.Random(1).randbytes(10 << 20))
    with pytest.raises(InvalidInput, match="neither YAML nor JSON"):
        read(path)


def test_dates_are_texts_and_numbers_in_quotes_are_too() -> None:
    found = decode(HEAD.encode() + b"metadata: {name: 2024-01-01, description: '1'}")
    assert (found.metadata.name, found.metadata.description) == ("2024-01-01", "1")


def test_only_the_first_problems_are_reported() -> None:
    drivers = "".join(f"- name: '{i} '\n" for i in range(30))
    with pytest.raises(InvalidInput, match=r"; and 20 more$"):
        decode(f"{HEAD}drivers:\n{drivers}".encode())


def test_a_cassette_that_could_not_be_read_is_not_written() -> None:
    with pytest.raises(InvalidInput, match=r"drivers\[0\]\.name"):
        encode(Cassette("n1", drivers=(Driver("A/B"),)))


def test_as_many_devices_as_there_may_be_are_written_and_read() -> None:
    attributes = {f"attribute{i}": {"string": "x" * 64} for i in range(32)}
    devices = tuple({"name": f"gpu-{i}", "attributes": attributes} for i in range(MAX_DEVICES))
    cassette = Cassette("n1", drivers=(Driver("gpu.example.com", pools=(Pool("{node}", devices),)),))
    assert len(decode(encode(cassette, as_json=True)).drivers[0].pools[0].devices) == MAX_DEVICES


def test_what_is_too_large_to_be_read_is_not_written() -> None:
    large = Cassette("n1", metadata=Metadata(description="x" * MAX_BYTES))
    with pytest.raises(InvalidInput, match=r"^the cassette is larger than 64 MiB, the limit for reading it$"):
        encode(large, as_json=True)
    many = Plugin("example.com/led", (PluginDevice("a", numa_nodes=(0,) * MAX_VALUES),))
    with pytest.raises(InvalidInput, match=r"^the cassette has more than 3000000 values, the limit for reading it$"):
        encode(Cassette("n1", plugins=(many,)))


def test_a_small_file_cannot_become_gigabytes_of_values() -> None:
    with pytest.raises(InvalidInput, match="more than 3000000 values, the limit for a cassette"):
        decode(b'{"a": [' + b"0," * MAX_VALUES + b"0]}")
    with pytest.raises(yaml.YAMLError, match="more than 5 values, the limit for a cassette"):
        check_events(b"a: [1, 2, 3]", 5)
    check_events(b"a: [1, 2]", 5)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: (HEAD + text).encode())))
def test_whatever_is_read_it_is_a_cassette_or_invalid(content: bytes) -> None:
    try:
        assert isinstance(decode(content), Cassette)
    except InvalidInput as e:
        assert len(str(e)) < 5_000


def test_the_limit_is_that_of_the_documentation() -> None:
    assert (cassette_file.MAX_BYTES, cassette_file.MAX_VALUES) == (64 << 20, 3_000_000)
