import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from devlet.cli import manifests

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

PLURALS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
    "DeviceClass": "/apis/resource.k8s.io/{version}/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/{version}/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/{version}/namespaces/default/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/{version}/namespaces/default/resourceclaimtemplates",
}


@pytest.fixture
def served(api: "API", cluster: Path) -> "API":
    """The cluster, on a server that knows v1."""
    from devlet.objects.conversion import convert

    for manifest in manifests.read([str(cluster)]):
        kind = manifest.kind
        stored = convert(manifest.document, "v1" if kind in ("Node", "Pod") else "resource.k8s.io/v1")
        api.put(f"{PLURALS[kind].format(version='v1')}/{manifest.name}", stored)
    return api


def test_a_pod_of_the_server_is_explained_and_nothing_is_written(run: "Run", served: "API") -> None:
    assert run("explain", "pod/big") == 0
    assert run.out.startswith("pod default/big does not fit: 0/2 nodes are available")
    assert "by claim default/training" in run.out
    assert {method for method, _, _ in served.requests} == {"GET"}


def test_a_claim_of_the_server_is_explained(run: "Run", served: "API") -> None:
    assert run("explain", "any") == 0
    assert run.out.startswith("claim default/any fits: 2/2 nodes")
    assert run("explain", "claim/nix", "-n", "team") == 1
    assert run.err == 'error: claim "nix" not found in namespace team; look in others with -n NAMESPACE\n'


def test_files_are_enough(run: "Run", api: "API", cluster: Path) -> None:
    assert run("explain", "big", "-f", str(cluster), "--all-nodes", "-o", "wide") == 0
    assert "Node n1" in run.out and "Node n2" in run.out
    assert api.requests == []


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_programs_get_a_document(run: "Run", cluster: Path, format: str) -> None:
    assert run("explain", "big", "-f", str(cluster), "-o", format, "--node", "n1") == 0
    found = json.loads(run.out) if format == "json" else yaml.safe_load(run.out)
    assert found["fits"] is False
    (node,) = found["nodes"]
    verdicts = {each["device"]: each["verdict"] for each in node["requests"][0]["devices"] if each["pool"] == "n1"}
    assert verdicts == {"gpu-0": "in-use", "gpu-1": "free", "gpu-2": "request-selector"}


def test_a_devlet_is_explained_as_devlet_allocates_and_files_as_kubernetes_does(
    run: "Run", served: "API", cluster: Path
) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/any"
    selector = {"cel": {"expression": 'device.attributes["gpu.example.com"].speed == 1'}}
    exactly = {"deviceClassName": "gpu", "selectors": [selector]}
    claim = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    served.put(path, claim)
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "hasty"}, **claim}
    (cluster / "hasty.json").write_text(json.dumps(document))

    def outcomes(*arguments: str) -> set[str]:
        assert run("explain", *arguments, "-o", "json") == 0
        return {node["outcome"] for node in json.loads(run.out)["nodes"]}

    assert outcomes("any") == {"no-fit"} and outcomes("any", "--no-improved") == {"error"}
    assert outcomes("hasty", "-f", str(cluster)) == {"error"}
    assert outcomes("hasty", "-f", str(cluster), "--improved") == {"no-fit"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "say which pod or claim: NAME, pod/NAME or claim/NAME"),
        (("node/n1",), '"node": only pods and claims can be explained'),
        (("x", "-o", "name"), 'output format "name": expected json, yaml or wide'),
        (("x", "-f", "nowhere.yaml"), "nowhere.yaml: No such file"),
    ],
)
def test_wrong_usage_is_an_error(run: "Run", api: "API", arguments: tuple[str, ...], error: str) -> None:
    assert run("explain", *arguments) == 1
    assert run.err.startswith("error: ") and error in run.err
