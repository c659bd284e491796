import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.documents import Document
from devlet.objects.protobuf.decoder import decoder
from devlet.objects.protobuf.encoder import encoder
from devlet.objects.schema.messages import message

CONFIG_MAP = message("k8s.io.api.core.v1.ConfigMap")
SLICE = message("k8s.io.api.resource.v1.ResourceSlice")


def there_and_back(name: str, document: Document) -> Document:
    data = encoder(message(name)).write(document)
    return decoder(message(name)).read(data, 0, len(data))


@pytest.mark.spec("KA-2.3")
def test_map_entries_are_sorted_by_the_bytes_of_their_keys() -> None:
    keys = ["b", "a", "", "é", "\U0001f600", "\uffff", "B"]
    data = encoder(CONFIG_MAP).write({"data": dict.fromkeys(keys, "")})
    places = [data.index(b"\x0a" + bytes([len(key.encode())]) + key.encode() + b"\x12") for key in sorted(keys)[1:]]
    assert places == sorted(places)


@pytest.mark.spec("KA-2.3")
def test_fields_that_are_not_pointers_are_written_even_if_unset() -> None:
    assert encoder(message("k8s.io.api.core.v1.ContainerPort")).write({}) == bytes.fromhex("0a00 1000 1800 2200 2a00")
    assert encoder(message("k8s.io.api.resource.v1.Counter")).write({}) == b"\x0a\x03\x0a\x010"


@given(st.dictionaries(st.text(), st.text(), min_size=1))
def test_any_strings_survive(data: dict[str, str]) -> None:
    assert there_and_back(CONFIG_MAP.name, {"metadata": {}, "data": data})["data"] == data


devices = st.fixed_dictionaries(
    {"name": st.text()},
    optional={
        "attributes": st.dictionaries(
            st.text(max_size=5),
            st.fixed_dictionaries({"int": st.integers(-(2**63), 2**63 - 1)})
            | st.fixed_dictionaries({"bool": st.booleans()})
            | st.fixed_dictionaries({"string": st.text(max_size=5)}),
            min_size=1,
        ),
        "allNodes": st.booleans(),
    },
)


@given(st.lists(devices, min_size=1, max_size=5))
def test_any_devices_survive(devices: list[Document]) -> None:
    spec = {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": devices}
    assert there_and_back(SLICE.name, {"metadata": {}, "spec": spec})["spec"] == spec
