"""`devlet explain` and `devlet simulate` on a real cluster say what kube-scheduler does, and only read."""

import json
import sys
from typing import Any

import anyio
import pytest

from devlet.testing.waiting import deadline
from tests.support.peers.control_plane import ControlPlane

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

OBJECTS = """
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: l4}}}
  - {name: gpu-1, attributes: {model: {string: a100}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: big, namespace: default}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
          selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "a100"'}}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  tolerations: [{operator: Exists}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: big}]
  containers: [{name: main, image: none, resources: {claims: [{name: gpu}]}}]
"""
READY = {"status": {"allocatable": {"pods": "10", "cpu": "4", "memory": "8Gi"}, "capacity": {"pods": "10"}}}


class Asked:
    """Commands of devlet on the cluster."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        command = [sys.executable, "-m", "devlet", *arguments, "--kubeconfig", str(self._cluster.kubeconfig)]
        done = await anyio.run_process(command, input=stdin.encode(), check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    async def document(self, *arguments: str, stdin: str = "") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self(*arguments, "-o", "json", stdin=stdin))
        return found

    async def scheduling(self, pod: str, reason: str) -> str:
        """The message of the scheduler's event."""
        with deadline():
            while True:
                events = (await self.document("events", "--for", f"pod/{pod}"))["items"]
                found = [event["message"] for event in events if event["reason"] == reason]
                if found:
                    return str(found[0])
                await anyio.sleep(0.2)


@pytest.fixture
async def asked(cluster: ControlPlane) -> Asked:
    asked = Asked(cluster)
    await asked("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    await asked("apply", "-f", "-", stdin=OBJECTS)
    patch = ["--subresource=status", "--type=merge", "-p", json.dumps(READY)]
    patched = await cluster.kubectl("patch", "node", "n1", *patch)
    assert patched.returncode == 0, patched.stderr
    return asked


def chosen(explanation: dict[str, Any]) -> list[str]:
    devices = explanation["nodes"][0]["requests"][0]["devices"]
    return [device["device"] for device in devices if device["verdict"] == "chosen"]


async def test_the_scheduler_does_what_was_said_before_and_after(asked: Asked) -> None:
    first = await asked.document("explain", "first", "-f", "-", stdin=POD % "first")
    assert first["fits"] and chosen(first) == ["gpu-1"]

    await asked("apply", "-f", "-", stdin=POD % "first")
    await asked.scheduling("first", "Scheduled")
    claims = (await asked.document("get", "resourceclaims"))["items"]
    (claim,) = [each for each in claims if each["metadata"]["name"].startswith("first-gpu-")]
    assert [each["device"] for each in claim["status"]["allocation"]["devices"]["results"]] == ["gpu-1"]
    text = await asked("explain", "pod/first")
    assert text.startswith("pod default/first: its claim is allocated, and it is bound to node n1")

    await asked("apply", "-f", "-", stdin=POD % "second")
    assert "cannot allocate all claims" in await asked.scheduling("second", "FailedScheduling")
    text = await asked("explain", "second")
    assert text.startswith("pod default/second does not fit: 0/1 nodes are available")
    assert f"by claim default/{claim['metadata']['name']}" in text
    rows = [line.split()[:3] for line in (await asked("simulate")).splitlines()]
    assert ["pod/second", "<none>", "<none>"] in rows
