from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace as msgspec_replace

from devlet.alloc.features import Rules
from devlet.cli import allocation_files
from devlet.cli.allocation_input import Objects
from devlet.cli.explaining import Answer, Question, answer
from devlet.errors import DevletError, InvalidInput
from devlet.objects.identifiers import DriverName
from devlet.objects.node_drivers import ANNOTATION, NodeDriver, encode

NOW = datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)


def ask(folder: Path, *words: str, node: str = "", rules: Rules | None = None) -> Answer:
    objects: Objects = allocation_files.read([str(folder)], "default")
    return answer(replace(Question.parse(words, "default"), node=node), objects, rules or Rules.reference())


def text(found: Answer) -> str:
    return "\n".join(found.lines(NOW, wide=False, all_nodes=False))


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("x",), ""),
        (("pod/x",), "pod"),
        (("po", "x"), "pod"),
        (("Pods/x",), "pod"),
        (("claim/x",), "claim"),
        (("resourceclaims.resource.k8s.io/x",), "claim"),
    ],
)
def test_a_question_is_about_a_pod_or_a_claim(words: tuple[str, ...], kind: str) -> None:
    question = Question.parse(words, "ns")
    assert (question.kind, question.key) == (kind, ("ns", "x"))


@pytest.mark.parametrize("words", [(), ("pod", "a", "b"), ("pod/",), ("a/b/c",), ("",), ("service/x",)])
def test_anything_else_is_an_error(words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        Question.parse(words, "ns")


@pytest.mark.spec("DA-11.04")
def test_a_pod_that_does_not_fit_gets_the_cause_the_devices_and_what_would_help(cluster: Path) -> None:
    found = text(ask(cluster, "pod/big"))
    assert found.startswith("pod default/big does not fit: 0/2 nodes are available")
    assert "in use            gpu-0   by claim default/training" in found
    assert "release claim default/training" in found
    assert "Claim big-gpu does not exist yet: its template was used" in found


def test_a_claim_that_fits_gets_what_would_be_chosen_and_passed_over(cluster: Path) -> None:
    found = text(ask(cluster, "any"))
    assert found.startswith("claim default/any fits: 2/2 nodes are available")
    assert "chosen            gpu-1" in found and "not needed" in found


def test_an_allocated_claim_says_where_and_what_was_passed_over(cluster: Path) -> None:
    found = text(ask(cluster, "training"))
    assert found.startswith("claim default/training is allocated")
    assert "since 2026-01-02T03:04:05Z (60s ago), on node: n1" in found and "used by: pods/trainer" in found
    assert "gpu.example.com/n1/gpu-1 for request gpu" in found and "n2" not in found


def add(folder: Path, document: str) -> None:
    (folder / "z.yaml").write_text(document)


POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  resourceClaims: [%s]
  %s
"""
TRAINING = "{name: gpu, resourceClaimName: training}"
ANY = "{name: other, resourceClaimName: any}"


def test_a_pod_whose_claims_are_allocated_says_so(cluster: Path) -> None:
    add(cluster, POD % ("p", TRAINING, ""))
    assert text(ask(cluster, "p")).startswith("pod default/p: its claim is allocated, but it is not bound to a node")
    add(cluster, POD % ("p", TRAINING, "nodeName: n1"))
    assert "its claim is allocated, and it is bound to node n1" in text(ask(cluster, "p"))


def test_a_pod_with_an_allocated_claim_is_looked_at_only_where_that_can_be_used(cluster: Path) -> None:
    add(cluster, POD % ("p", f"{TRAINING}, {ANY}", ""))
    found = text(ask(cluster, "p"))
    assert found.startswith("pod default/p fits: 1/1 nodes are available: n1")
    assert "Excluded: 1 node: the allocated devices of claim training cannot be used there" in found
    assert "claim default/training: allocated" in found


def test_a_pod_that_no_node_is_left_for_says_so(cluster: Path) -> None:
    add(cluster, POD % ("p", ANY, "nodeSelector: {zone: c}"))
    found = text(ask(cluster, "p"))
    assert found.startswith("pod default/p does not fit: every node is excluded")
    assert "Excluded: 2 nodes: the pod's nodeSelector does not match" in found
    assert ask(cluster, "p").document()["fits"] is False


def test_an_error_on_another_node_makes_kubernetes_give_up(cluster: Path) -> None:
    cluster_file = cluster / "cluster.yaml"
    cluster_file.write_text(
        cluster_file.read_text().replace("gpu-0, basic: {attributes: {model", "gpu-0, basic: {attributes: {x")
    )
    expression = """device.attributes["gpu.example.com"].model != "h100" """
    wishes = (cluster / "wishes.yaml").read_text()
    selectors = f"exactly: {{deviceClassName: gpu, selectors: [{{cel: {{expression: '{expression}'}}}}]}}"
    (cluster / "wishes.yaml").write_text(wishes.replace("exactly: {deviceClassName: gpu}", selectors))
    note = "An error on node n2 makes kube-scheduler give up on all nodes"
    assert note in text(ask(cluster, "any"))
    assert note not in text(ask(cluster, "any", rules=Rules()))


def test_the_document_has_everything(cluster: Path) -> None:
    found = ask(cluster, "big").document()
    assert (found["kind"], found["namespace"], found["name"]) == ("pod", "default", "big")
    assert found["fits"] is False and found["notCreatedYet"] == ["big-gpu"]
    assert {node["node"] for node in found["nodes"]} == {"n1", "n2"}
    settled = ask(cluster, "training").document()
    assert settled["fits"] is True and settled["allocated"][0]["name"] == "training"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("nix",), 'there is no pod or claim "nix" in namespace default: use -n for another namespace'),
        (("pod/nix",), 'pod "nix" not found in namespace default'),
        (("claim/big",), 'claim "big" not found in namespace default, but there is a pod of that name: use pod/big'),
        (("claim/far",), 'claim "far" not found in namespace default, but in team: use -n team'),
        (("plain",), "pod default/plain uses no resource claims, so it needs no allocation"),
        (("both",), 'both a pod and a claim are named "both": use pod/both or claim/both'),
        (("broken",), "pod default/broken: claim x: resourceclaim gone does not exist: create it"),
    ],
)
def test_what_cannot_be_explained_is_an_error_with_a_next_step(
    cluster: Path, words: tuple[str, ...], error: str
) -> None:
    claim = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: %s, namespace: %s}\n"
        "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}"
    )
    broken = POD % ("broken", "{name: x, resourceClaimName: gone}", "")
    documents = [
        POD % ("plain", "", ""),
        POD % ("both", ANY, ""),
        broken,
        claim % ("both", "default"),
        claim % ("far", "team"),
    ]
    add(cluster, "\n---\n".join(documents))
    with pytest.raises(DevletError, match=error):
        ask(cluster, *words)


def test_a_missing_class_is_named(cluster: Path) -> None:
    wishes = (cluster / "wishes.yaml").read_text()
    (cluster / "wishes.yaml").write_text(
        wishes.replace("exactly: {deviceClassName: gpu}", "exactly: {deviceClassName: gpus}")
    )
    found = text(ask(cluster, "any"))
    assert found.startswith("claim default/any does not fit") and "gpus" in found


def test_a_node_that_does_not_exist_is_an_error(cluster: Path) -> None:
    assert "1/1 nodes" in text(ask(cluster, "any", node="n2"))
    with pytest.raises(DevletError, match='node "n9" not found'):
        ask(cluster, "any", node="n9")


def test_devices_of_a_driver_that_is_gone_from_its_node_are_left_out_but_not_for_kubernetes(cluster: Path) -> None:
    objects: Objects = allocation_files.read([str(cluster)], "default")
    gone = encode([NodeDriver(DriverName("gpu.example.com"), gone_since="2026-01-02T03:04:05Z")])
    for key, node in objects.nodes.items():
        objects.nodes[key] = msgspec_replace(
            node, metadata=msgspec_replace(node.metadata, annotations={ANNOTATION: gone})
        )
    question = Question.parse(("any",), "default")
    ours = answer(question, objects, Rules())
    assert ours.found is not None and not ours.found.fits
    assert "Excluded: devices of driver gpu.example.com, which is gone from node" in text(ours)
    assert {each["driver"] for each in ours.document()["goneDrivers"]} == {"gpu.example.com"}
    theirs = answer(question, objects, Rules.reference())
    assert theirs.found is not None and theirs.found.fits and "Left out" not in text(theirs)


SECOND = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: second, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices: {results: [{request: gpu, driver: gpu.example.com, pool: n1, device: gpu-0}]}
"""


def test_claims_with_one_device_are_named_with_what_to_do(cluster: Path) -> None:
    assert "Overlaps" not in text(ask(cluster, "training")) and "overlaps" not in ask(cluster, "training").document()
    add(cluster, SECOND)
    both = "device gpu.example.com/n1/gpu-0 is allocated to two claims: default/second and default/training"
    for name in ("training", "second"):
        found = ask(cluster, name)
        assert f"\n\nOverlaps:\n  {both}\n" in text(found) and "delete the pods of all but one" in text(found)
        assert found.document()["overlaps"] == [{"text": both, "claims": ["default/second", "default/training"]}]


def test_a_pod_whose_device_another_claim_has_shows_the_overlap(cluster: Path) -> None:
    add(cluster, f"{SECOND}---{POD % ('user', TRAINING, '')}")
    assert "is allocated to two claims: default/second and default/training" in text(ask(cluster, "pod/user"))


def test_a_claim_without_devices_has_no_overlaps(cluster: Path) -> None:
    add(cluster, SECOND)
    assert "Overlaps" not in text(ask(cluster, "any"))
