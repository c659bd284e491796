"""A running devlet is asked why: with its own objects, as a pod waits, gets its devices, and others come after it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devlet.testing import warm_start

pytestmark = [pytest.mark.long]

OBJECTS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: node1
  pool: {name: node1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, basic: {attributes: {model: {string: a100}}}}
  - {name: gpu-1, basic: {attributes: {model: {string: l4}}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: big}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
          selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "a100"'}}]
---
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: big}]
  containers: [{name: main, image: x, resources: {claims: [{name: gpu}]}}]
"""


class Node:
    """`node("get", "pods")` runs a command against it and gives what it printed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        done = self.run([*arguments, "--root", str(self.root)], stdin)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def run(self, arguments: list[str], stdin: str = "") -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "devlet", *arguments]
        return warm_start.run(command, input=stdin)

    def document(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self(*arguments, "-o", "json"))
        return found

    def versions(self) -> dict[str, str]:
        found = self.document("get", "pods,resourceclaims,resourceslices", "-A")
        return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found["items"]}

    def allocate(self, claim: str, device: str) -> None:
        words = ["--root", str(self.root), claim, "--device", f"gpu.example.com/node1/{device}"]
        warm_start.run([sys.executable, "-m", "devlet.testing.allocate", *words]).check_returncode()


@pytest.fixture
def node(root: Path) -> Iterator[Node]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("DEVLET_", "NOTIFY_", "WATCHDOG_"))}
    command = [sys.executable, "-m", "devlet", "up", "--no-control", "--root", str(root), "--node-name", "node1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ) as daemon:
        try:
            assert daemon.stdout is not None
            assert daemon.stdout.readline().startswith("devlet is ready")
            node = Node(root)
            node("apply", "-f", "-", stdin=OBJECTS)
            yield node
        finally:
            daemon.kill()


def test_a_pod_is_explained_before_and_after_somebody_took_its_device(node: Node) -> None:
    before = node("explain", "pod/train")
    assert before.startswith("pod default/train fits: 1/1 nodes are available: node1")
    node.allocate("held", "gpu-0")
    after = node("explain", "train")
    assert after.startswith("pod default/train does not fit: 0/1 nodes are available")
    assert "by claim default/held" in after and "release claim default/held" in after
    assert 'model == "a100" is false' in after


def test_a_claim_with_a_device_says_which_and_what_was_passed_over(node: Node) -> None:
    node.allocate("held", "gpu-1")
    text = node("explain", "claim/held")
    assert text.startswith("claim default/held is allocated")
    assert "gpu.example.com   node1   gpu-1" in text and "gpu.example.com/node1/gpu-0 for request gpu" in text


def test_nothing_is_changed_by_a_question(node: Node) -> None:
    versions = node.versions()
    node("explain", "train")
    rows = [line.split() for line in node("simulate").splitlines()]
    assert rows == [["NAME", "NODE", "DEVICES"], ["pod/train", "node1", "gpu-0"], ["claim/held", "node1", "gpu-1"]]
    assert node.versions() == versions


def test_what_get_prints_is_enough_for_a_simulation_elsewhere(node: Node) -> None:
    node.allocate("held", "gpu-0")
    kinds = "nodes,deviceclasses,resourceslices,resourceclaims,resourceclaimtemplates,pods"
    printed = node("get", kinds, "-A", "-o", "yaml")
    done = node.run(["simulate", "-f", "-", "-o", "wide"], stdin=printed)
    assert done.returncode == 0, done.stderr
    assert "pod/train" in done.stdout and "0/1 nodes are available" in done.stdout
    explained = node.run(["explain", "train", "-f", "-"], stdin=printed)
    assert "by claim default/held" in explained.stdout


def test_what_does_not_exist_is_an_error_with_a_next_step(node: Node) -> None:
    assert 'there is no pod or claim "nix" in namespace default' in node("explain", "nix", code=1)
    node("delete", "resourceclaimtemplate", "big")
    assert "resourceclaimtemplate big does not exist: create it" in node("explain", "train", code=1)
