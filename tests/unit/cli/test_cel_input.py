from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.cli.cel_input import of_files, of_server
from devlet.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from devlet.cli.session import Session
    from tests.unit.cli.conftest import API

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: team}
spec:
  devices:
    requests:
    - name: gpu
      firstAvailable:
      - {name: big, deviceClassName: gpu, selectors: [{cel: {expression: "broken("}}]}
      - {name: small, deviceClassName: gpu, selectors: [{cel: {expression: "true"}}]}
---
device: {name: spare, driver: gpu.example.com, attributes: {model: {string: l4}}}
"""


def test_devices_come_from_slices_of_any_version(cluster: Path) -> None:
    found = of_files([str(cluster)], "default").specimens()
    assert [s.name for s in found if s.node == "n2"] == ["gpu.example.com/n2/gpu-0"]
    assert {s.node for s in found} == {"n1", "n2"}
    assert found[-1].input.attributes["gpu.example.com"]["model"] == "l4"


def test_selectors_come_from_classes_claims_and_templates_with_their_place(cluster: Path) -> None:
    selectors = of_files([str(cluster)], "team").selectors()
    (template,) = [s for s in selectors if s.object.startswith("ResourceClaimTemplate")]
    assert template.object == "ResourceClaimTemplate team/two-big"
    assert template.path == "spec.spec.devices.requests[0].exactly.selectors[0]"
    assert (template.class_name, template.request) == ("gpu", "gpu")
    assert template.origin == f"{cluster / 'wishes.yaml'}, document 1"


def test_alternatives_have_selectors_and_broken_ones_are_read(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM)
    found = of_files([str(tmp_path / "claim.yaml")], "default")
    assert [(s.request, s.expression) for s in found.selectors()] == [("gpu/big", "broken("), ("gpu/small", "true")]
    assert found.selectors()[0].path == "spec.devices.requests[0].firstAvailable[0].selectors[0]"
    assert [specimen.name for specimen in found.specimens()] == ["gpu.example.com/spare"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("device: 5", "device: expected driver, attributes and capacity"),
        ("device: {attributes: {a: {int: x}}}", "device: "),
        ("{apiVersion: resource.k8s.io/v1alpha2, kind: ResourceClaim, metadata: {name: a}}", "is not supported: use"),
        ("{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a}, spec: []}", "spec"),
        ("[1]", "expected a mapping with apiVersion and kind"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_file(text: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(InvalidInput) as e:
        of_files([str(tmp_path)], "default")
    assert str(e.value).startswith(f"{tmp_path / 'bad.yaml'}, document 1: ")
    assert error in str(e.value)


def test_a_server_is_only_read(api: "API", session: "Session") -> None:
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "devices": [{"name": "gpu-0"}]}
    api.put("/apis/resource.k8s.io/v1/resourceslices/s1", {"spec": spec})
    selectors = [{"cel": {"expression": "true"}}]
    api.put("/apis/resource.k8s.io/v1/deviceclasses/gpu", {"spec": {"selectors": selectors}})
    found = of_server(session)
    assert [specimen.name for specimen in found.specimens()] == ["gpu.example.com/gpu-0"]
    assert [selector.place for selector in found.selectors()] == [
        f"{session.address}: DeviceClass gpu: spec.selectors[0]"
    ]
    assert {method for method, _, _ in api.requests} == {"GET"}


def test_a_server_without_the_group_is_an_error(api: "API", session: "Session") -> None:
    empty = {"kind": "APIGroupDiscoveryList", "items": []}
    api.answers["GET", "/apis"] = (200, empty)
    with pytest.raises(NotFound, match=r"needs the API group resource\.k8s\.io"):
        of_server(session)
