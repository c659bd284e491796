"""The manifests in deploy/ are taken by a real API server, and the rights they give are enough, and not too much."""

import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.kit.processes import RunningProcess, line, process
from devlet.testing.node_process import NODE, NodeProcess
from devlet.testing.waiting import until
from tests.support.peers.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
MANIFESTS = sorted(DEPLOY.glob("*.yaml"))
TOLERATES = [{"operator": "Exists"}]  # nothing here removes the taint of a node that is not ready
GPU = {"deviceClassName": "gpu"}


@pytest.fixture(scope="module")
async def cluster(peers: "Peers") -> AsyncIterator[ControlPlane]:
    """Without the reference's scheduler and controllers: devlet's are looked at here."""
    peers.need("etcd", "kubectl", "kube-apiserver")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with control_plane(peers.binaries, path, fsync=False) as running:
        for name in ("rbac-node.yaml", "rbac-control.yaml"):
            await kubectl(running, "apply", "-f", str(DEPLOY / name))
        yield running
    shutil.rmtree(path)


async def kubectl(cluster: ControlPlane, *arguments: str, stdin: Any = None) -> str:
    text = json.dumps(stdin) if stdin is not None else ""
    answer = await cluster.kubectl(*arguments, stdin=text)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


async def read(cluster: ControlPlane, *arguments: str) -> Any:
    return json.loads(await kubectl(cluster, "get", *arguments, "-o", "json"))


async def kubeconfig(cluster: ControlPlane, account: str) -> Path:
    """As the service account, with a token of its own."""
    token = await kubectl(cluster, "create", "token", account, "-n", "devlet-system")
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.strip()}
    path = cluster.root / f"{account}.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def control(
    cluster: ControlPlane, config: Path, log: Path, *arguments: str
) -> AbstractAsyncContextManager[RunningProcess]:
    argv = [sys.executable, "-m", "devlet", "control", "--kubeconfig", str(config), *arguments]
    return process(argv, log=log, name="devlet control", ready=line("devlet control is ready: "))


def pod(name: str, **spec: Any) -> dict[str, Any]:
    given = {"tolerations": TOLERATES, "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": given | spec}


def with_claim(name: str, **claim: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]
    claims = [{"name": "gpu"} | claim]
    return pod(name, schedulerName="devlet", containers=containers, resourceClaims=claims)


def resource(kind: str, name: str, spec: Any, version: str = "v1") -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}


SUPPLY = [
    resource("DeviceClass", "gpu", {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}),
    resource(
        "ResourceSlice",
        "n1-gpus",
        {
            "driver": "gpu.example.com",
            "nodeName": NODE,
            "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
        },
    ),
    resource("ResourceClaim", "own", {"devices": {"requests": [{"name": "gpu", "exactly": GPU}]}}),
    resource("ResourceClaimTemplate", "gpus", {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": GPU}]}}}),
]

NODE_OBJECT = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
async def test_a_manifest_is_taken_by_the_server(cluster: ControlPlane, manifest: Path) -> None:
    arguments = ("apply", "--dry-run=server", "--validate=strict", "-f", str(manifest))
    assert "(server dry run)" in await kubectl(cluster, *arguments)


@pytest.mark.spec("KA-9.4")
async def test_a_node_agent_with_its_service_account_runs_pods(cluster: ControlPlane, root: Path) -> None:
    config = await kubeconfig(cluster, "devlet-node")
    async with NodeProcess(root, arguments=["--kubeconfig", str(config)]) as node:
        await kubectl(cluster, "wait", f"node/{NODE}", "--for=condition=Ready", "--timeout=60s")
        await kubectl(cluster, "apply", "-f", "-", stdin=pod("placed", nodeName=NODE))
        await kubectl(cluster, "wait", "pod/placed", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
        lease = (await read(cluster, "lease", NODE, "-n", "kube-node-lease"))["spec"]["renewTime"]

        async def renewed() -> bool:
            return bool((await read(cluster, "lease", NODE, "-n", "kube-node-lease"))["spec"]["renewTime"] > lease)

        await until(renewed, within=60)
        await kubectl(cluster, "delete", "pod", "placed", "--wait=true", "--timeout=60s")
    assert "forbidden" not in node.log.lower()
    await kubectl(cluster, "delete", "node", NODE)


async def test_a_node_agent_with_the_role_for_it_shows_its_static_pods(cluster: ControlPlane, root: Path) -> None:
    role = str(DEPLOY / "rbac-static-pods.yaml")
    await kubectl(cluster, "apply", "-f", role)
    manifests = root / "manifests"
    manifests.mkdir()
    (manifests / "web.json").write_text(json.dumps(pod("web")))
    config = await kubeconfig(cluster, "devlet-node")
    arguments = ["--kubeconfig", str(config), "--static-pod-path", str(manifests)]
    async with NodeProcess(root, arguments=arguments) as node:
        mirror = f"pod/web-{NODE}"
        await kubectl(cluster, "wait", mirror, "--for=create", "--timeout=60s")
        await kubectl(cluster, "wait", mirror, "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
        (manifests / "web.json").unlink()
        await kubectl(cluster, "wait", mirror, "--for=delete", "--timeout=60s")
    assert "forbidden" not in node.log.lower()
    await kubectl(cluster, "delete", "-f", role)
    await kubectl(cluster, "delete", "node", NODE)


async def test_the_scheduler_with_its_service_account_gives_a_pod_its_devices(
    cluster: ControlPlane, root: Path
) -> None:
    await kubectl(cluster, "apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": SUPPLY})
    await kubectl(cluster, "create", "-f", "-", stdin=NODE_OBJECT)
    config, log = await kubeconfig(cluster, "devlet-control"), root / "control.log"
    async with control(cluster, config, log, "--identity", "one"):
        assert "devlet control is ready: scheduler leads" in log.read_text()
        await kubectl(cluster, "apply", "-f", "-", stdin=with_claim("p", resourceClaimName="own"))
        await kubectl(cluster, "apply", "-f", "-", stdin=pod("not-ours"))
        await kubectl(cluster, "wait", "pod/p", "--for=condition=PodScheduled", "--timeout=60s")
        claim = (await read(cluster, "resourceclaim", "own"))["status"]
        assert [each["device"] for each in claim["allocation"]["devices"]["results"]] == ["gpu-0"]
        assert [each["name"] for each in claim["reservedFor"]] == ["p"]
        assert "nodeName" not in (await read(cluster, "pod", "not-ours"))["spec"]
        holder = (await read(cluster, "lease", "devlet-scheduler", "-n", "kube-system"))["spec"]["holderIdentity"]
        assert holder.startswith("one_")
    assert (await read(cluster, "lease", "devlet-scheduler", "-n", "kube-system"))["spec"]["holderIdentity"] == ""
    assert "forbidden" not in log.read_text().lower()
    await kubectl(cluster, "delete", "pods", "--all", "--force")
    await kubectl(cluster, "delete", "node", NODE)


async def test_the_controllers_with_their_rights_make_claims_and_evict(cluster: ControlPlane, root: Path) -> None:
    await kubectl(cluster, "apply", "-f", str(DEPLOY / "rbac-controllers.yaml"))
    await kubectl(cluster, "apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": SUPPLY})
    await kubectl(cluster, "create", "-f", "-", stdin=NODE_OBJECT)
    config, log = await kubeconfig(cluster, "devlet-control"), root / "control.log"
    async with control(cluster, config, log, "--controllers", "*"):
        await kubectl(cluster, "apply", "-f", "-", stdin=with_claim("made", resourceClaimTemplateName="gpus"))
        await kubectl(cluster, "wait", "pod/made", "--for=condition=PodScheduled", "--timeout=60s")
        rule = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": {"key": "broken", "effect": "NoExecute"}}
        await kubectl(cluster, "apply", "-f", "-", stdin=resource("DeviceTaintRule", "broken", rule, "v1beta2"))

        async def evicted() -> bool:
            return "deletionTimestamp" in (await read(cluster, "pod", "made"))["metadata"]

        await until(evicted)
        await kubectl(cluster, "delete", "pod", "made", "--force")

        async def claims() -> list[str]:
            return [each["metadata"]["name"] for each in (await read(cluster, "resourceclaims"))["items"]]

        # Nothing here collects garbage: it is enough that the claim has no devices any more.
        async def allocated() -> list[str]:
            items = (await read(cluster, "resourceclaims"))["items"]
            return [each["metadata"]["name"] for each in items if each.get("status", {}).get("allocation")]

        await until(allocated, lambda found: found == [])
        assert await claims() != []
    assert "forbidden" not in log.read_text().lower()
    await kubectl(cluster, "delete", "devicetaintrule", "broken")
    await kubectl(cluster, "delete", "-f", str(DEPLOY / "rbac-controllers.yaml"))
    await kubectl(cluster, "delete", "node", NODE)


NODE_MAY_NOT = [
    "get secrets",
    "list secrets",
    "get configmaps",
    "create serviceaccounts/token",
    "delete nodes",
    "update nodes",
    "list resourceclaims",
    "update resourceclaims",
    "patch resourceclaims/status",
    "create resourceslices",
    "create pods",
    "update pods",
    "create pods/binding",
    "create pods/exec",
    "get leases -n kube-system",
    "list leases -n kube-node-lease",
    "delete leases -n kube-node-lease",
    "create deployments.apps",
    "impersonate users",
    "create clusterrolebindings",
]
CONTROL_MAY_NOT = [
    "get secrets",
    "get configmaps",
    "delete nodes",
    "patch nodes",
    "create pods",
    "create pods/exec",
    "delete pods",
    "create resourceslices",
    "patch deviceclasses",
    "patch devicetaintrules",
    "update resourceclaims",
    "update pods/finalizers",
    "create leases -n kube-system",
    "update leases/kube-scheduler -n kube-system",
    "get leases/kube-scheduler -n kube-system",
    "create serviceaccounts/token",
    "impersonate users",
    "create clusterrolebindings",
]


@pytest.mark.parametrize(
    ("account", "what"),
    [("devlet-node", what) for what in NODE_MAY_NOT] + [("devlet-control", what) for what in CONTROL_MAY_NOT],
)
async def test_an_account_may_not(cluster: ControlPlane, account: str, what: str) -> None:
    assert await may(cluster, account, what) == "no"


@pytest.mark.parametrize(
    ("account", "what"),
    [
        ("devlet-node", "patch nodes/status"),
        ("devlet-node", "update leases -n kube-node-lease"),
        ("devlet-control", "create pods/binding"),
        ("devlet-control", "update leases/devlet-scheduler -n kube-system"),
    ],
)
async def test_an_account_may(cluster: ControlPlane, account: str, what: str) -> None:
    assert await may(cluster, account, what) == "yes"


async def may(cluster: ControlPlane, account: str, what: str) -> str:
    verb, thing, *more = what.split()
    plural, _, rest = thing.partition("/")
    name = rest if plural == "leases" else ""
    words = [verb, f"{plural}/{name}" if name else plural]
    words += [f"--subresource={rest}"] if rest and not name else []
    user = f"--as=system:serviceaccount:devlet-system:{account}"
    answer = await cluster.kubectl("auth", "can-i", *words, *more, user)
    return answer.stdout.split()[0]
