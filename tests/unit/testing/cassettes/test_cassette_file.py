import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.testing.cassettes import cassette_file, library
from devlet.testing.cassettes.cassette import Cassette, Driver
from devlet.testing.cassettes.cassette_file import MAX_BYTES, decode, encode, read

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
        (b"a: b\na: c", "line 2: neither YAML nor JSON: a key is twice, or no text"),
        (b'{"kind": "Cassette", "kind": "Pod"}', "line 1: neither YAML nor JSON: a key is twice, or no text"),
        (b"\xff\xfe\x00", "neither YAML nor JSON"),
        (b"a: &x [1]\nb: *x", "aliases are not allowed: *x"),
        (b"[" * 60_000, "nested more than 50 levels deep"),
        (b"kind: Pod\napiVersion: v1", "not a cassette: kind is 'Pod', expected 'Cassette'"),
        (b"kind: Cassette\napiVersion: devlet.dev/v2", "apiVersion 'devlet.dev/v2' is not known to this devlet, only"),
        (b"kind: Cassette\napiVersion: devlet.dev/v1alpha1", "missing required field `node`"),
        (HEAD.encode() + b"colour: red", "unknown field `colour`"),
        (HEAD.encode() + b"drivers: 3", "Expected `array`, got `int` - at `drivers`"),
        (HEAD.encode() + b"drivers: [{name: ../../etc/passwd}]", "drivers[0].name: '../../etc/passwd':"),
        (HEAD.encode() + b"plugins: [{resource: /dev/sda}]", "plugins[0].resource: '/dev/sda' must be a valid"),
        (HEAD.encode() + b"plugins: [{resource: !!python/name:os.system x}]", "neither YAML nor JSON"),
    ],
)
def test_what_is_no_cassette_is_refused_with_a_reason(content: bytes, told: str) -> None:
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


def test_ten_megabytes_are_not_even_parsed(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(random.Random(1).randbytes(10 << 20))
    with pytest.raises(InvalidInput, match="larger than 4 MiB, which no cassette is"):
        read(path)
    path.write_bytes(random.Random(1).randbytes(MAX_BYTES))
    with pytest.raises(InvalidInput, match="neither YAML nor JSON"):
        read(path)


def test_dates_are_texts_and_numbers_in_quotes_are_too() -> None:
    found = decode(HEAD.encode() + b"metadata: {name: 2024-01-01, description: '1'}")
    assert (found.metadata.name, found.metadata.description) == ("2024-01-01", "1")


def test_no_more_problems_are_told_than_anybody_reads() -> None:
    drivers = "".join(f"- name: '{i} '\n" for i in range(30))
    with pytest.raises(InvalidInput, match=r"; and 20 more$"):
        decode(f"{HEAD}drivers:\n{drivers}".encode())


def test_what_nobody_could_read_is_not_written() -> None:
    with pytest.raises(InvalidInput, match=r"drivers\[0\]\.name"):
        encode(Cassette("n1", drivers=(Driver("A/B"),)))


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: (HEAD + text).encode())))
def test_whatever_is_read_it_is_a_cassette_or_invalid(content: bytes) -> None:
    try:
        assert isinstance(decode(content), Cassette)
    except InvalidInput as e:
        assert len(str(e)) < 5_000


def test_the_limit_is_that_of_the_documentation() -> None:
    assert cassette_file.MAX_BYTES == 4 << 20
