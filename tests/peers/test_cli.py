"""devlet's object verbs against a real API server, beside kubectl."""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
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
kind: Namespace
metadata: {name: team, labels: {a: b, z: "1"}}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: b, namespace: team, labels: {app: x}}
  data: {text: "line 1\\nline 2\\n", number: "12", "true": "yes", odd: "a: 'b' #c", spaces: "x  \\n y"}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a, namespace: team}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: team}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {model: {string: A}}, capacity: {memory: {value: 8Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: team}
spec: {nodeSelector: {no: such}, containers: [{name: c, image: none}]}
"""


async def devlet(
    cluster: ControlPlane, *arguments: str, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "devlet", *arguments]
    if not environment:
        command += ["--kubeconfig", str(cluster.kubeconfig)]
    answer = await anyio.run_process(command, input=stdin.encode(), env={**os.environ, **environment}, check=False)
    return subprocess.CompletedProcess(command, answer.returncode, answer.stdout.decode(), answer.stderr.decode())


def without_ages(text: str) -> list[list[str]]:
    """Both programs look at the clock, one after the other."""
    return [re.sub(r"\b(\d+[smhd])+\b", "AGE", line).split() for line in text.splitlines()]


@pytest.fixture(scope="module")
async def objects(cluster: ControlPlane) -> AsyncIterator[None]:
    ready = await devlet(cluster, "wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    assert ready.returncode == 0, ready.stderr
    applied = await devlet(cluster, "apply", "-f", "-", stdin=OBJECTS.partition("\n---\n")[0])
    assert (applied.stdout, applied.stderr) == ("namespace/team created\n", "")
    ready = await devlet(cluster, "wait", "--for=create", "serviceaccount/default", "-n", "team", "--timeout=60s")
    assert ready.returncode == 0, ready.stderr
    applied = await devlet(cluster, "apply", "-f", "-", stdin=OBJECTS)
    assert applied.stderr == ""
    assert applied.stdout.splitlines()[0] == "namespace/team unchanged"
    assert {line.rpartition(" ")[2] for line in applied.stdout.splitlines()[1:]} == {"created"}
    yield


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(
    "arguments",
    [
        "get ns",
        "get namespace team -o wide --show-labels",
        "get cm -n team",
        "get cm -n team b a --no-headers",
        "get cm/b pod/p -n team",
        "get pods,cm,resourceclaims -A",
        "get resourceclaims.v1beta1.resource.k8s.io -n team",
        "get resourceslices -o wide",
        "get all -n team",
        "get clusterroles -l kubernetes.io/bootstrapping=rbac-defaults",
        "get cm -n team --sort-by=.metadata.creationTimestamp -l app=x",
        "get cm -A --field-selector metadata.name=b",
        "get pods,nodes,priorityclasses",
        "get pods,cm -n team --no-headers",
        "get deviceclasses -A",
        "get cm -n team -o custom-columns=N:.metadata.name,L:.metadata.labels.app,D:.data.number",
        "get apiservices",
        "get cm nope -n team --ignore-not-found",
    ],
)
async def test_tables_are_kubectls(cluster: ControlPlane, arguments: str) -> None:
    ours, theirs = await devlet(cluster, *arguments.split()), await cluster.kubectl(*arguments.split())
    assert without_ages(ours.stdout) == without_ages(theirs.stdout)
    assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(
    "arguments",
    [
        ["get", "cm", "b", "-n", "team", "-o", "yaml"],
        ["get", "cm", "-n", "team", "-o", "yaml"],
        ["get", "resourceslice", "n1-gpus", "-o", "yaml", "--show-managed-fields"],
        ["get", "cm,resourceclaims", "-A", "-o", "name"],
        ["get", "cm", "-n", "team", "-o", "jsonpath={.items[*].metadata.name}"],
        ["get", "cm", "-n", "team", "-o", 'jsonpath={range .items[*]}{.metadata.name}: {.data}{"\\n"}{end}'],
        ["get", "ns", "-o", "jsonpath={.items[?(@.metadata.name=='team')].metadata.labels.a}|{.items[-1:].kind}"],
        ["get", "resourceslice", "n1-gpus", "-o", "jsonpath={..value} {.spec.devices[0].capacity} {.nope}"],
        ["get", "resourceslice/n1-gpus", "-o", "jsonpath={.spec.pool['name','generation']}{.spec.devices[*].name}"],
    ],
)
async def test_documents_are_kubectls(cluster: ControlPlane, arguments: list[str]) -> None:
    ours, theirs = await devlet(cluster, *arguments), await cluster.kubectl(*arguments)
    assert theirs.returncode == 0, theirs.stderr
    assert ours.stdout == theirs.stdout


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize("arguments", ["get cm b -n team", "get cm,pods -A", "get pods -n nowhere"])
async def test_json_is_kubectls(cluster: ControlPlane, arguments: str) -> None:
    ours = await devlet(cluster, *arguments.split(), "-o", "json")
    theirs = await cluster.kubectl(*arguments.split(), "-o", "json")
    assert json.loads(ours.stdout) == json.loads(theirs.stdout)


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("get cm nope", 'error: configmaps "nope" not found'),
        ("get nope", 'error: the server doesn\'t have a resource type "nope"'),
        ("get pods --field-selector a=b", "field label not supported: a"),
        ("get pods -l (", "error: "),
        ("wait pod/p -n team --for=condition=Ready --timeout=1s", "timed out waiting for the condition on pods/p"),
    ],
)
async def test_what_fails_with_kubectl_fails_here(cluster: ControlPlane, arguments: str, said: str) -> None:
    ours, theirs = await devlet(cluster, *arguments.split()), await cluster.kubectl(*arguments.split())
    assert (ours.returncode, theirs.returncode) == (1, 1)
    assert said in ours.stderr


@pytest.mark.usefixtures("objects")
async def test_events_are_kubectls(cluster: ControlPlane) -> None:
    waited = await devlet(cluster, "wait", "pod/p", "-n", "team", "--for=condition=PodScheduled=False", "--timeout=60s")
    assert waited.stdout == "pod/p condition met\n", waited.stderr
    ours = await devlet(cluster, "events", "-n", "team", "--for", "pod/p")
    theirs = await cluster.kubectl("events", "-n", "team", "--for", "pod/p")
    assert without_ages(ours.stdout)[:2] == without_ages(theirs.stdout)[:2]
    described = await devlet(cluster, "describe", "pod", "p", "-n", "team")
    assert "FailedScheduling" in described.stdout


@pytest.mark.usefixtures("objects")
async def test_a_slice_is_described_with_its_devices(cluster: ControlPlane) -> None:
    described = await devlet(cluster, "describe", "resourceslices")
    assert "  gpu-0   <none>   <none>    model=A      memory=8Gi   <none>\n" in described.stdout, described.stderr


@pytest.mark.usefixtures("objects")
async def test_claims_and_slices_have_our_tables_and_drivers_are_for_nodes(cluster: ControlPlane) -> None:
    claims = await devlet(cluster, "get", "claims", "-A")
    header = "NAMESPACE NAME STATE DEVICES NODE CONSUMERS PREPARED AWAITS SINCE AGE"
    assert claims.stdout.splitlines()[0].split() == header.split(), claims.stderr
    assert all("<unknown>" in line for line in claims.stdout.splitlines()[1:])
    slices = await devlet(cluster, "get", "slices", "--no-headers")
    assert slices.stdout.split()[5:7] == ["1", "0"], slices.stderr
    drivers = await devlet(cluster, "get", "drivers")
    assert (drivers.returncode, "served only by the devlet on that machine" in drivers.stderr) == (1, True)


async def test_apply_owns_fields_and_gives_them_up(cluster: ControlPlane) -> None:
    def config(**data: str) -> str:
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "owned"},
            "data": data,
        }
        return json.dumps(document)

    said = []
    for data in ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, {"a": "1"}):
        answer = await devlet(cluster, "apply", "-f", "-", stdin=config(**data))
        said.append(answer.stdout)
    assert said == [f"configmap/owned {word}\n" for word in ("created", "unchanged", "configured")]
    assert (await cluster.kubectl("get", "cm", "owned", "-o", "jsonpath={.data}")).stdout == '{"a":"1"}'

    dry = await devlet(cluster, "apply", "--dry-run=server", "-f", "-", stdin=config(a="9"))
    assert dry.stdout == "configmap/owned configured (server dry run)\n"
    await cluster.kubectl("patch", "cm", "owned", "--type=merge", "-p", '{"data":{"a":"other"}}')
    conflict = await devlet(cluster, "apply", "-f", "-", stdin=config(a="2"))
    assert conflict.returncode == 1
    assert 'conflict with "kubectl-patch" using v1: .data.a' in conflict.stderr
    assert "--force-conflicts" in conflict.stderr
    forced = await devlet(cluster, "apply", "--force-conflicts", "-f", "-", stdin=config(a="2"))
    assert forced.stdout == "configmap/owned configured\n"

    unknown = await devlet(cluster, "apply", "-f", "-", stdin=config(a="2").replace('"data"', '"dada"'))
    assert unknown.returncode == 1
    assert "dada" in unknown.stderr


async def test_delete_waits_until_the_object_is_gone(cluster: ControlPlane) -> None:
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    await devlet(cluster, "apply", "-f", "-", stdin=json.dumps(held))
    late = await devlet(cluster, "delete", "cm", "held", "--timeout=1s")
    assert late.stdout == 'configmap "held" deleted from default namespace\n'
    assert (late.returncode, "timed out" in late.stderr) == (1, True)

    codes: list[int] = []

    async def wait() -> None:
        codes.append((await devlet(cluster, "wait", "--for=delete", "cm/held", "--timeout=60s")).returncode)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        patch = '{"metadata":{"finalizers":null}}'
        assert (await cluster.kubectl("patch", "cm", "held", "--type=merge", "-p", patch)).returncode == 0
    assert codes == [0]
    again = await devlet(cluster, "delete", "cm", "held")
    assert again.stderr == 'error: configmaps "held" not found\n'


@pytest.mark.parametrize("flags", [[], ["--dry-run=server"], ["-o", "name"], ["--force", "--grace-period=0"]])
async def test_delete_says_what_kubectl_says(cluster: ControlPlane, flags: list[str]) -> None:
    said = []
    for run in (cluster.kubectl, lambda *a: devlet(cluster, *a)):
        await cluster.kubectl("create", "configmap", "short")
        said.append((await run("delete", "cm", "short", *flags)).stdout)
    assert said[0] == said[1] != ""
    await cluster.kubectl("delete", "cm", "short", "--ignore-not-found")


async def test_changes_are_followed(cluster: ControlPlane) -> None:
    command = [
        sys.executable,
        "-m",
        "devlet",
        "get",
        "cm",
        "--field-selector=metadata.name=followed",
        "-w",
        "-o",
        "name",
    ]
    async with await anyio.open_process([*command, "--kubeconfig", str(cluster.kubeconfig)]) as process:
        assert process.stdout is not None
        with deadline():
            while True:
                await cluster.kubectl("create", "configmap", "followed")
                await cluster.kubectl("delete", "configmap", "followed")
                with anyio.move_on_after(1):
                    seen = await process.stdout.receive()
                    break
        process.terminate()
    assert seen.startswith(b"configmap/followed\n")


async def test_kubectl_runs_it_as_a_plugin_on_its_own_cluster(cluster: ControlPlane, tmp_path: Path) -> None:
    plugin = tmp_path / "kubectl-devlet"
    plugin.write_text(f"#!{sys.executable}\nfrom devlet.cli.main import kubectl_plugin\nkubectl_plugin()\n")
    plugin.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.kubeconfig)}
    kubectl = Path(__file__).parents[2] / ".cache" / "peers" / "bin" / "kubectl"
    command = [str(kubectl), "devlet", "get", "ns", "default", "-o", "name"]
    answer = await anyio.run_process(command, env=environment, check=False)
    assert (answer.stdout, answer.stderr) == (b"namespace/default\n", b"")


async def test_kubeconfig_in_the_environment_needs_a_context(cluster: ControlPlane, tmp_path: Path) -> None:
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "DEVLET_ROOT": str(tmp_path)}
    without = await devlet(cluster, "get", "ns", **environment)
    assert without.stderr == f"error: no devlet runs on {tmp_path}: start one with `devlet up`\n"
    chosen = await devlet(cluster, "get", "ns", "default", "-o", "name", "--context", "peers", **environment)
    assert chosen.stdout == "namespace/default\n", chosen.stderr
