import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from devlet.cli import main, manifests

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
    assert run.err == 'error: claim "nix" not found in namespace team: use -n for another namespace\n'


class Offline:
    """One command line without a server: `offline("big", "-f", "file")` gives what it printed."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> str:
        assert main.run(["explain", *arguments]) == 0
        return self._capture.readouterr().out


@pytest.fixture
def offline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Offline:
    monkeypatch.setenv("DEVLET_ROOT", str(tmp_path / "nobody"))
    return Offline(capsys)


def test_files_are_enough(offline: Offline, cluster: Path) -> None:
    text = offline("big", "-f", str(cluster), "--all-nodes", "-o", "wide")
    assert "Node n1" in text and "Node n2" in text


def test_a_pod_in_a_file_can_be_asked_about_on_a_server(run: "Run", served: "API", cluster: Path) -> None:
    served.remove("/api/v1/namespaces/default/pods/big")
    assert run("explain", "big") == 1
    assert run("explain", "big", "-f", str(cluster / "wishes.yaml")) == 0
    assert run.out.startswith("pod default/big does not fit: 0/2 nodes are available")


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_programs_get_a_document(offline: Offline, cluster: Path, format: str) -> None:
    text = offline("big", "-f", str(cluster), "-o", format, "--node", "n1")
    found = json.loads(text) if format == "json" else yaml.safe_load(text)
    assert found["fits"] is False
    (node,) = found["nodes"]
    verdicts = {each["device"]: each["verdict"] for each in node["requests"][0]["devices"] if each["pool"] == "n1"}
    assert verdicts == {"gpu-0": "in-use", "gpu-1": "free", "gpu-2": "request-selector"}


def outcomes(text: str) -> set[str]:
    return {node["outcome"] for node in json.loads(text)["nodes"]}


HASTY = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "hasty"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "selectors": [{"cel": {"expression": 'device.attributes["gpu.example.com"].speed == 1'}}],
                    },
                }
            ]
        }
    },
}


def test_a_devlet_is_explained_as_devlet_allocates(run: "Run", served: "API") -> None:
    served.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/hasty", HASTY)
    assert run("explain", "hasty", "-o", "json") == 0 and outcomes(run.out) == {"no-fit"}
    assert run("explain", "hasty", "-o", "json", "--no-improved") == 0 and outcomes(run.out) == {"error"}


def test_files_are_explained_as_kubernetes_allocates(offline: Offline, cluster: Path) -> None:
    (cluster / "hasty.json").write_text(json.dumps(HASTY))
    assert outcomes(offline("hasty", "-f", str(cluster), "-o", "json")) == {"error"}
    assert outcomes(offline("hasty", "-f", str(cluster), "-o", "json", "--improved")) == {"no-fit"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "name one pod or claim: NAME, pod/NAME or claim/NAME"),
        (("node/n1",), 'cannot explain "node", only pods and claims'),
        (("x", "-o", "name"), 'output format "name": expected json, yaml or wide'),
        (("x", "-f", "nowhere.yaml"), "nowhere.yaml: No such file"),
    ],
)
def test_wrong_usage_is_an_error(run: "Run", api: "API", arguments: tuple[str, ...], error: str) -> None:
    assert run("explain", *arguments) == 1
    assert run.err.startswith("error: ") and error in run.err
