"""A whole trial, with a fake driver in place of the real ones and devlet's own command line in place of kubectl."""

import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import NODE
from tests.support.claim_node import SLICES
from tests.support.cluster_contract.specimens import resource_slice
from tests.support.manifests import trial as manifests
from tests.support.manifests.environment import Environment
from tests.support.manifests.trial import Manifest, at_stage, for_scheduler, manifest, trial
from tests.support.peers.peer_node import PeerNode

pytestmark = [pytest.mark.anyio]

MANIFESTS = Path(__file__).parents[3] / "peers" / "manifests"


def test_every_manifest_has_an_outcome_and_every_stage_something_that_leads_to_it() -> None:
    paths = manifests.manifests(MANIFESTS)
    files = {path for path in MANIFESTS.glob("*.yaml") if not path.name.endswith(manifests.EXPECTED)}
    assert {path.name for path in files - set(paths)} == {"classes.yaml"}
    for found in map(manifest, paths):
        labels = {each["metadata"].get("labels", {}).get("stage", "") for each in found.documents}
        assert labels == {stage.apply for stage in found.stages} | {""}, found.name


def test_pods_ask_for_the_scheduler_of_the_trial_and_nothing_else_does() -> None:
    pod = {"kind": "Pod", "metadata": {"labels": {"stage": "two"}}, "spec": {"containers": []}}
    claim = {"kind": "ResourceClaim", "metadata": {}, "spec": {}}
    assert for_scheduler(pod, "devlet")["spec"] == {"containers": [], "schedulerName": "devlet"}
    assert (for_scheduler(pod, ""), for_scheduler(claim, "devlet")) == (pod, claim)
    assert (at_stage([pod, claim], ""), at_stage([pod, claim], "two")) == ([claim], [pod])


DOCUMENTS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: any}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: any}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: first}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: one}]
  containers: [{name: main, image: x, resources: {claims: [{name: gpu}]}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, labels: {stage: second}}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: any}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: second, labels: {stage: second}}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: two}]
  containers: [{name: main, image: x, resources: {claims: [{name: gpu}]}}]
"""
EXPECTED = """
stages:
- pods: &first {first: {phase: Running, node: n1}}
  claims: &one {one: {reserved: [first], results: [{request: gpu, device: 'gpu.example.com/{p}/d{a}'}]}}
  containers: &has {first/main: {env: ['CLAIM_one={uid:one}']}}
- apply: second
  pods: {<<: *first, second: {phase: Pending}}
  claims: {<<: *one, two: {}}
  containers: *has
  events: {second: {FailedScheduling: {devlet: in use}}}
- delete: [pod/first]
  pods: {second: {phase: Running, node: n1}}
  claims: {one: {}, two: {reserved: [second], results: [{request: gpu, device: 'gpu.example.com/{p}/d{a}'}]}}
  containers: {second/main: {env: ['CLAIM_two={uid:two}']}}
"""
KUBECTL = """#!/bin/sh
config=$2 verb=$3
shift 3
exec {python} -m devlet "$verb" --kubeconfig "$config" "$@"
"""


@pytest.fixture
async def world(root: Path) -> AsyncIterator[Environment]:
    """With one device."""
    program = root / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL.format(python=sys.executable))
    program.chmod(0o755)
    async with PeerNode(root, root, control=True) as node, FakeDraDriver(root) as driver:
        await node.until_connected(driver)
        await node.call("POST", SLICES, resource_slice("slice", node_name=NODE, driver=driver.name))
        async with connected(kubeconfigs.connection([node.kubeconfig])) as cluster:
            yield Environment("devlet", "embedded", node, cluster, node.kubeconfig, program.parent)


@pytest.fixture
def written(tmp_path: Path) -> Manifest:
    (tmp_path / "turns.yaml").write_text(DOCUMENTS)
    (tmp_path / "turns.expected.yaml").write_text(EXPECTED)
    [path] = manifests.manifests(tmp_path)
    return manifest(path)


async def test_a_manifest_comes_to_its_outcome_also_when_the_node_is_killed_and_leaves_nothing(
    world: Environment, written: Manifest
) -> None:
    points: list[str] = []

    async def disturb(point: str) -> None:
        points.append(point)
        if point == "reached":
            await world.node.kill()
            await world.node.start()

    await trial(written, world, disturb)
    assert points == ["applied", "applied", "applied", "reached", "deleted"]
    assert await world.left() == []
    assert (await world.seen()).events == []


@pytest.mark.long
async def test_another_outcome_is_reported_with_its_stage_and_cleaned_up(
    world: Environment, written: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "PATIENCE", 2.0)
    documents = [each for each in written.documents if each["metadata"]["name"] != "second"]
    with pytest.raises(AssertionError, match=r"turns, stage 2: .*pod second: is not there"):
        await trial(Manifest("turns", tuple(documents), written.stages), world)
    await world.until_clean()


@pytest.mark.long
async def test_a_scheduler_that_lost_a_pod_is_started_again_once(
    world: Environment, written: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "PATIENCE", 5.0)
    lost = [each for each in written.documents if each["metadata"]["name"] == "second"]
    rescues: list[str] = []

    async def rescue() -> None:
        rescues.append("second")
        await world.kubectl("apply", "-f", "-", documents=lost)

    async def clean_up(point: str) -> None:
        if point == "deleted":
            await world.kubectl("delete", "--wait=false", "-f", "-", documents=lost)

    kept = tuple(each for each in written.documents if each not in lost)
    await trial(Manifest("turns", kept, written.stages), replace(world, rescue=rescue), clean_up)
    assert rescues == ["second"]


@pytest.mark.long
async def test_what_kubectl_rejects_is_an_error(
    world: Environment, written: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.manifests.environment.PATIENCE", 2.0)
    with pytest.raises(AssertionError, match=r"kubectl apply -f -: .*NoSuchKind"):
        await world.kubectl("apply", "-f", "-", documents=[{"apiVersion": "v1", "kind": "NoSuchKind", "metadata": {}}])
