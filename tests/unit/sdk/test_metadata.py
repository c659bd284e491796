import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import DevletError, InvalidInput, NotFound, Unavailable
from devlet.objects.types.claim import NetworkDeviceData
from devlet.objects.types.slice import DeviceAttribute
from devlet.sdk.metadata import (
    V1ALPHA1,
    DeviceMetadata,
    MetadataDevice,
    MetadataRequest,
    ObjectName,
    claim_file,
    decode,
    encode,
    merged,
    read,
    read_request,
    template_file,
)

GPU = DeviceMetadata(
    ObjectName("my-claim", "default", "uid-1", 1),
    requests=(
        MetadataRequest(
            "gpu", (MetadataDevice("gpu.example.com", "n1", "gpu-0", {"model": DeviceAttribute(string="LX")}),)
        ),
    ),
)
KNOWN = encode(GPU).decode()


def broken(**changes: Any) -> str:
    """The same object with other members; without those that are None."""
    document = json.loads(KNOWN) | changes
    return json.dumps({key: value for key, value in document.items() if value is not None})


NEWER = broken(apiVersion="metadata.resource.k8s.io/v99", requests={"another": "shape"})


@pytest.mark.spec("DN-5.8a")
def test_a_file_is_a_stream_of_pretty_objects_in_the_format_of_the_reference() -> None:
    assert KNOWN == (
        """{
  "kind": "DeviceMetadata",
  "apiVersion": "metadata.resource.k8s.io/v1alpha1",
  "metadata": {
    "name": "my-claim",
    "namespace": "default",
    "uid": "uid-1",
    "generation": 1
  },
  "requests": [
    {
      "name": "gpu",
      "devices": [
        {
          "driver": "gpu.example.com",
          "pool": "n1",
          "name": "gpu-0",
          "attributes": {
            "model": {
              "string": "LX"
            }
          }
        }
      ]
    }
  ]
}
"""
    )
    assert encode(GPU, [V1ALPHA1, V1ALPHA1]).decode() == KNOWN + KNOWN


@pytest.mark.spec("DN-5.8a")
def test_attributes_of_each_type_and_network_data_have_the_names_of_the_reference() -> None:
    attributes = {
        "a": DeviceAttribute(int_=0),
        "b": DeviceAttribute(bool_=False),
        "c": DeviceAttribute(string=""),
        "d": DeviceAttribute(version="1.2.3"),
        "e": DeviceAttribute(ints=(1, 2)),
    }
    network = NetworkDeviceData(interface_name="eth0", ips=("10.0.0.1/24",))
    device = MetadataDevice("d.example.com", "p", "n", attributes, network)
    [found] = json.loads(encode(DeviceMetadata(requests=(MetadataRequest("r", (device,)),))))["requests"][0]["devices"]
    assert found["attributes"] == {
        "a": {"int": 0},
        "b": {"bool": False},
        "c": {"string": ""},
        "d": {"version": "1.2.3"},
        "e": {"ints": [1, 2]},
    }
    assert found["networkData"] == {"interfaceName": "eth0", "ips": ["10.0.0.1/24"]}


@pytest.mark.spec("DN-5.8b")
def test_containers_find_the_file_under_the_claims_name_or_under_the_pods_own_for_it() -> None:
    folder = "/var/run/kubernetes.io/dra-device-attributes"
    assert claim_file("gpu.example.com", "c", "r") == PurePosixPath(
        f"{folder}/resourceclaims/c/r/gpu.example.com-metadata.json"
    )
    assert template_file("gpu.example.com", "c", "r") == PurePosixPath(
        f"{folder}/resourceclaimtemplates/c/r/gpu.example.com-metadata.json"
    )


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/etc"])
def test_a_name_that_is_a_path_names_no_file(name: str) -> None:
    for parts in ([name, "c", "r"], ["d", name, "r"], ["d", "c", name]):
        with pytest.raises(InvalidInput, match="it would be another path"):
            claim_file(*parts)
        with pytest.raises(InvalidInput, match="it would be another path"):
            template_file(*parts)


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1)
attributes = st.one_of(
    st.builds(DeviceAttribute, int_=numbers),
    st.builds(DeviceAttribute, bool_=st.booleans()),
    st.builds(DeviceAttribute, string=words),
    st.builds(DeviceAttribute, version=words),
    st.builds(DeviceAttribute, strings=st.lists(words, min_size=1).map(tuple)),
    st.builds(DeviceAttribute, bools=st.lists(st.booleans(), min_size=1).map(tuple)),
)
networks = st.builds(
    NetworkDeviceData, interface_name=words, ips=st.lists(words, max_size=2).map(tuple), hardware_address=words
)
devices = st.builds(
    MetadataDevice, words, words, words, st.dictionaries(words, attributes, max_size=3), st.none() | networks
)
requests = st.lists(st.builds(MetadataRequest, words, st.lists(devices, max_size=2).map(tuple)), max_size=2).map(tuple)
anything = st.builds(DeviceMetadata, st.builds(ObjectName, words, words, words, numbers), st.none() | words, requests)


@given(anything)
def test_what_is_written_is_read_back(value: DeviceMetadata) -> None:
    assert decode(encode(value)) == value


@given(
    st.binary()
    | words.map(str.encode)
    | st.recursive(words, lambda x: st.lists(x) | st.dictionaries(words, x)).map(
        lambda value: json.dumps(value).encode()
    )
)
def test_whatever_is_in_a_file_it_is_read_or_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode(content)


@pytest.mark.spec("DN-10.D05")
@pytest.mark.parametrize(
    "stream",
    [KNOWN, NEWER + KNOWN, NEWER + "\n\n\t" + NEWER + KNOWN, KNOWN + "broken {", KNOWN + broken(requests=1)],
    ids=["known", "unknown first", "two unknown first", "broken behind", "wrong behind"],
)
def test_the_first_object_of_a_known_version_is_taken(stream: str) -> None:
    assert decode(stream.encode()) == GPU


@pytest.mark.spec("DN-10.D05")
@pytest.mark.parametrize(
    ("stream", "text"),
    [
        ("", "no metadata objects found"),
        (" \n", "no metadata objects found"),
        ("nonsense", "not JSON"),
        (KNOWN[:-10], "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("7", "not a metadata object"),
        ("null", "not a metadata object"),
        (broken(kind=None), "without kind"),
        (broken(apiVersion=None), "without apiVersion"),
        (broken(apiVersion=7), "without apiVersion"),
        (broken(kind="Pod"), f"an object of {V1ALPHA1} that is a Pod, expected DeviceMetadata"),
        (broken(requests="this should be a list"), f"{V1ALPHA1}: Expected `array`"),
        (NEWER, "no metadata of a known version .*v1alpha1; found: metadata.resource.k8s.io/v99"),
        (NEWER + NEWER, "found: metadata.resource.k8s.io/v99, metadata.resource.k8s.io/v99"),
        (NEWER.replace('"kind": "DeviceMetadata", ', ""), "v99 without kind"),
        (broken(requests=1) + KNOWN, "Expected `array`"),
        (broken(kind=None) + KNOWN, "without kind"),
        (broken(apiVersion=None) + KNOWN, "without apiVersion"),
        (NEWER + broken(requests=1) + KNOWN, "Expected `array`"),
        (NEWER + "{" + KNOWN, "not JSON"),
    ],
)
def test_all_else_that_is_wrong_is_fatal(stream: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        decode(stream.encode())


@pytest.mark.spec("DN-10.D05")
def test_members_that_are_not_known_and_null_are_passed_over() -> None:
    assert decode(broken(podClaimName=None, more={"a": 1}).encode()) == GPU
    assert decode(KNOWN.replace('"requests"', '"podClaimName": null, "requests"').encode()) == GPU


def test_errors_of_a_file_have_its_path(tmp_path: Path) -> None:
    path = tmp_path / "x-metadata.json"
    with pytest.raises(NotFound, match=f"no metadata: {path} does not exist"):
        read(path)
    path.write_text("x")
    with pytest.raises(InvalidInput, match=f"{path}: not JSON"):
        read(path)
    with pytest.raises(Unavailable, match="cannot be read: Is a directory"):
        read(tmp_path)


@pytest.mark.spec("DN-10.D06")
class TestMerging:
    def part(self, driver: str, *requests: str, pod_claim: str | None = None) -> DeviceMetadata:
        device = MetadataDevice(driver, "n1", "d0")
        named = tuple(MetadataRequest(request, (device,)) for request in requests)
        return DeviceMetadata(ObjectName("c", "default", "u", 1), pod_claim, named)

    def test_devices_of_equal_requests_are_put_together(self) -> None:
        both = merged([self.part("a", "gpu", "nic"), self.part("b", "disk", "gpu", pod_claim="mine")])
        drivers = {request.name: [device.driver for device in request.devices] for request in both.requests}
        assert drivers == {"gpu": ["a", "b"], "nic": ["a"], "disk": ["b"]}
        assert both.pod_claim_name == "mine"

    def test_a_directory_is_read_with_the_files_of_all_drivers(self, tmp_path: Path) -> None:
        for driver in ("b", "a"):
            (tmp_path / f"{driver}-metadata.json").write_bytes(encode(self.part(driver, "gpu")))
        (tmp_path / "readme.json").write_text("not metadata")
        [request] = read_request(tmp_path).requests
        assert [device.driver for device in request.devices] == ["a", "b"]

    def test_one_bad_file_spoils_the_directory(self, tmp_path: Path) -> None:
        (tmp_path / "a-metadata.json").write_bytes(encode(self.part("a", "gpu")))
        (tmp_path / "b-metadata.json").write_text("{")
        with pytest.raises(InvalidInput, match=r"b-metadata.json: not JSON"):
            read_request(tmp_path)

    @pytest.mark.parametrize("name", ["", "missing"])
    def test_without_files_there_is_no_metadata(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DevletError, match="no metadata: there are no files in"):
            read_request(tmp_path / name)
