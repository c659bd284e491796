from pathlib import Path

import pytest

from devlet.alloc.features import Rules
from devlet.cli import allocation_files
from devlet.cli.simulation import Placement, Simulation
from devlet.objects.types.claim import ResourceClaim


def simulation(folder: Path, *more: str) -> Simulation:
    (folder / "z-more.yaml").write_text("\n---\n".join(more))
    objects = allocation_files.read([str(folder)], "default")
    return Simulation(objects, objects.node_list(), Rules())


def placed(folder: Path, *more: str) -> dict[str, Placement]:
    return {each.name: each for each in simulation(folder, *more).run()}


def devices(claims: tuple[ResourceClaim, ...]) -> list[str]:
    return [result.device for claim in claims for result in claim.results]


def claim(name: str, request: str = "exactly: {deviceClassName: gpu}") -> str:
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}}}
spec: {{devices: {{requests: [{{name: r, {request}}}]}}}}
"""


def pod(name: str, *claims: str, spec: str = "", status: str = "{}") -> str:
    entries = ", ".join(f"{{name: {each}, resourceClaimName: {each}}}" for each in claims)
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  resourceClaims: [{entries}]
  {spec}
status: {status}
"""


def test_each_takes_what_is_left_on_the_first_node_where_it_fits(cluster: Path) -> None:
    found = placed(cluster, *(claim(name) for name in ("x", "y", "z")))
    assert [(name, each.node, devices(each.claims)) for name, each in found.items()] == [
        ("pod/big", "", []),
        ("claim/any", "n1", ["gpu-1"]),
        ("claim/x", "n1", ["gpu-2"]),
        ("claim/y", "n2", ["gpu-0"]),
        ("claim/z", "", []),
    ]
    assert "0/2 nodes are available" in found["claim/z"].cause


def test_the_claims_of_a_pod_are_placed_together_and_one_is_shared_with_the_next_pod(cluster: Path) -> None:
    found = placed(cluster, claim("x"), claim("y"), pod("first", "x", "y"), pod("second", "x"))
    assert (found["pod/first"].node, devices(found["pod/first"].claims)) == ("n1", ["gpu-1", "gpu-2"])
    assert "pod/second" not in found and "claim/x" not in found


def test_a_pod_stays_where_its_other_claims_are(cluster: Path) -> None:
    found = placed(cluster, claim("x"), pod("first", "training", "x"))
    assert found["pod/first"].node == "n1"


def test_pods_and_claims_that_have_their_devices_are_counted(cluster: Path) -> None:
    run = simulation(cluster, pod("first", "training"))
    names = [each.name for each in run.run()]
    assert (names, run.settled) == (["pod/big", "claim/any"], 1)


@pytest.mark.parametrize("status", ["{phase: Succeeded}", "{phase: Failed}"])
def test_a_pod_that_has_ended_needs_nothing(cluster: Path, status: str) -> None:
    assert "pod/old" not in placed(cluster, claim("x"), pod("old", "x", status=status))


@pytest.mark.parametrize(
    ("documents", "cause"),
    [
        ([pod("p", "gone")], "pod default/p: claim gone: resourceclaim gone does not exist: create it"),
        ([claim("x"), pod("p", "x", spec="nodeSelector: {zone: c}")], "the pod's nodeSelector does not match: 2 nodes"),
        ([claim("x", "exactly: {deviceClassName: nix}"), pod("p", "x")], "nix"),
    ],
)
def test_what_cannot_be_placed_says_why(cluster: Path, documents: list[str], cause: str) -> None:
    found = placed(cluster, *documents)["pod/p"]
    assert found.node == "" and cause in found.cause


def test_what_is_placed_is_written_into_the_claim(cluster: Path) -> None:
    objects = allocation_files.read([str(cluster)], "default")
    list(Simulation(objects, objects.node_list(), Rules()).run())
    allocation = objects.documents["default", "any"]["status"]["allocation"]
    assert allocation["devices"]["results"] == [
        {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-1"}
    ]
    assert allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n1"]
