from pathlib import Path

import pytest

from devlet.cli import allocation_files
from devlet.cli.allocation_input import Objects
from devlet.errors import InvalidInput

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu%s}}]}}
"""
SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d.example.com
  nodeName: n1
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices: [{name: a, allowMultipleAllocations: true, capacity: {m: {value: "%s", requestPolicy: %s}}}]
"""


def read(folder: Path, *texts: str) -> Objects:
    (folder / "file.yaml").write_text("\n---\n".join(texts))
    return allocation_files.read([str(folder / "file.yaml")], "team")


def test_all_that_matters_is_read_from_a_folder(cluster: Path) -> None:
    found = allocation_files.read([str(cluster)], "default")
    assert [name for _, name in found.nodes] == ["n1", "n2"]
    assert list(found.claims) == [("default", "training"), ("default", "any")]
    assert list(found.pods) == [("default", "big")] and list(found.templates) == [("default", "two-big")]
    assert [len(each.spec.devices) for each in found.slices.values()] == [3, 1]
    assert list(found.classes) == [("", "gpu")]


def test_objects_without_a_namespace_are_in_the_one_asked_for(tmp_path: Path) -> None:
    assert list(read(tmp_path, CLAIM % "").claims) == [("team", "c")]


def test_other_kinds_are_passed_over(tmp_path: Path) -> None:
    other = "apiVersion: gpus.example.com/v1\nkind: Node\nmetadata: {name: x}"
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}"
    found = read(tmp_path, other, deployment, CLAIM % "")
    assert not found.nodes and len(found.claims) == 1


def test_objects_without_a_name_get_different_ones(tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: train-}\nspec: {containers: []}"
    assert list(read(tmp_path, pod, pod).pods) == [("team", "train-0"), ("team", "train-1")]


def test_nothing_to_allocate_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no resource slices, claims or pods found in .*file\.yaml"):
        read(tmp_path, "apiVersion: v1\nkind: Node\nmetadata: {name: x}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            CLAIM.replace("/v1", "/v1alpha2") % "",
            "document 1: ResourceClaim in version resource.k8s.io/v1alpha2 is not supported",
        ),
        (CLAIM % ", count: many", 'document 1: ResourceClaim in version "v1" cannot be handled as a ResourceClaim'),
        (CLAIM % ", count: -1", r'document 1: ResourceClaim\.resource\.k8s\.io "c" is invalid: .*count'),
        (CLAIM % ", selectors: [{cel: {expression: 'device.driver =='}}]", r'"c" is invalid: .*Syntax error'),
        (CLAIM % ", selectors: [{cel: {expression: 'device.color'}}]", r'"c" is invalid: .*undefined field'),
        (CLAIM % ", capacity: {requests: {m: five}}", r"document 1: .*m"),
        (SLICE % ("lots", "null"), 'document 1: ResourceSlice in version "v1" cannot be handled'),
        (SLICE.replace("name: a", "name: A_b") % ("1", "null"), r'"s" is invalid: spec\.devices\[0\]\.name'),
        (
            SLICE % ("10", '{default: "1", validRange: {min: "1", step: "0"}}'),
            r'ResourceSlice\.resource\.k8s\.io "s" is invalid',
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}", "document 1: Pod: metadata.name is missing"),
        ("a: [", "invalid YAML"),
    ],
)
def test_what_is_wrong_in_a_file_is_an_error_that_names_file_document_and_object(
    tmp_path: Path, text: str, error: str
) -> None:
    with pytest.raises(InvalidInput, match=error) as raised:
        read(tmp_path, text)
    assert str(tmp_path / "file.yaml") in str(raised.value)


def test_a_wrong_allocation_is_an_error(tmp_path: Path) -> None:
    wrong = CLAIM % "" + "status: {allocation: {devices: {results: [{request: other, driver: d, pool: p, device: a}]}}}"
    with pytest.raises(InvalidInput, match=r"status\.allocation\.devices\.results"):
        read(tmp_path, wrong)
