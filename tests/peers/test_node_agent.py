"""The node agent as a node of a real API server, with a node's own credentials: what it writes is accepted."""

import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.documents import Document
from devlet.testing.embedded import READY_LINE
from devlet.testing.waiting import until
from tests.support.peers.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

NODE = "n1"
USER = f"system:node:{NODE}"


class Site:
    def __init__(self, plane: ControlPlane, root: Path) -> None:
        self.plane = plane
        self.root = root / "node"
        self.manifests = root / "pods"
        self.manifests.mkdir()
        self._lives = 0

    def devlet(self, address: str = "10.0.0.1") -> AbstractAsyncContextManager[RunningProcess]:
        self._lives += 1
        argv = [sys.executable, "-m", "devlet", "up", "--root", str(self.root), "--node-name", NODE]
        argv += ["--kubeconfig", str(self.plane.kubeconfig_of(USER)), "--static-pod-path", str(self.manifests)]
        log = self.manifests.parent / f"up-{self._lives}.log"
        return process([*argv, "--node-ip", address], log=log, name="devlet up", ready=line(READY_LINE))

    async def get(self, *what: str) -> Document:
        """Empty if there is no such thing."""
        answer = await self.plane.kubectl("get", *what, "-o", "json")
        return json.loads(answer.stdout) if answer.returncode == 0 else {}

    async def until(self, *what: str, holds: Callable[[Document], bool] = bool) -> Document:
        return await until(lambda: self.get(*what), lambda found: bool(found) and holds(found))

    async def runs(self, name: str) -> Document:
        return await self.until("pod", name, holds=lambda pod: pod["status"].get("phase") == "Running")

    async def apply(self, document: Document) -> None:
        answer = await self.plane.kubectl("create", "-f", "-", stdin=json.dumps(document))
        assert answer.returncode == 0, answer.stderr


def pod(name: str, **spec: object) -> Document:
    container = {"name": "main", "image": "x"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": NODE, "containers": [container], **spec},
    }


def condition(found: Document, type_: str) -> Document:
    return next((each for each in found["status"].get("conditions", ()) if each["type"] == type_), {})


@pytest.fixture
async def site(peers: "Peers") -> AsyncIterator[Site]:
    peers.need("etcd", "kube-apiserver", "kubectl")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    users = {USER: ["system:nodes"]}
    async with control_plane(peers.binaries, root / "plane", users=users, fsync=False) as plane:
        yield Site(plane, root)
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.spec("KA-9.3a")
async def test_a_node_registers_and_beats(site: Site) -> None:
    async with site.devlet():
        node = await site.until("node", NODE)
        assert {each["type"]: each["status"] for each in node["status"]["conditions"]} == {
            "MemoryPressure": "False",
            "DiskPressure": "False",
            "PIDPressure": "False",
            "Ready": "True",
        }
        lease = await site.until("lease", NODE, "-n", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == NODE and lease["spec"]["leaseDurationSeconds"] == 40
        assert [each["uid"] for each in lease["metadata"]["ownerReferences"]] == [node["metadata"]["uid"]]
        renewed = lease["spec"]["renewTime"]
        await site.until("lease", NODE, "-n", "kube-node-lease", holds=lambda each: each["spec"]["renewTime"] > renewed)


@pytest.mark.spec("KA-9.3i")
async def test_what_a_node_writes_of_a_pod_is_accepted(site: Site) -> None:
    async with site.devlet():
        await site.until("node", NODE)
        await site.apply(pod("a", readinessGates=[{"conditionType": "example.com/gate"}]))
        await site.apply(pod("late", activeDeadlineSeconds=1))
        found = await site.runs("a")
        assert condition(found, "Ready")["reason"] == "ReadinessGatesNotReady"
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"] == 1
        late = await site.until("pod", "late", holds=lambda pod: pod["status"].get("phase") == "Failed")
        assert late["status"]["reason"] == "DeadlineExceeded"
    async with site.devlet("10.0.0.2"):
        gate = {"status": {"conditions": [{"type": "example.com/gate", "status": "True"}]}}
        patch = ("patch", "pod", "a", "--subresource=status", "--type=strategic", "-p", json.dumps(gate))
        assert (await site.plane.kubectl(*patch)).returncode == 0
        found = await site.until("pod", "a", holds=lambda pod: condition(pod, "Ready").get("status") == "True")
        assert "reason" not in condition(found, "Ready")
        found = await site.until("pod", "a", holds=lambda pod: pod["status"]["hostIP"] == "10.0.0.2")
        assert found["status"]["hostIPs"] == [{"ip": "10.0.0.2"}]
        assert (await site.plane.kubectl("delete", "pod", "a", "late", "--timeout=60s")).returncode == 0


@pytest.mark.spec("KA-9.3o")
async def test_static_pods_have_mirrors_that_come_back_and_go_with_their_files(site: Site) -> None:
    document = {**pod("web"), "metadata": {"name": "web"}}
    document["spec"].pop("nodeName")
    file = site.manifests / "web.json"
    file.write_text(json.dumps(document))
    async with site.devlet():
        mirror = await site.runs("web-n1")
        assert (await site.plane.kubectl("delete", "pod", "web-n1", "--wait=false")).returncode == 0
        again = await site.until(
            "pod", "web-n1", holds=lambda pod: pod["metadata"]["uid"] != mirror["metadata"]["uid"] and "status" in pod
        )
        hashes = [each["metadata"]["annotations"]["kubernetes.io/config.mirror"] for each in (mirror, again)]
        assert hashes[0] == hashes[1]
        again = await site.runs("web-n1")
        assert again["status"]["containerStatuses"] == mirror["status"]["containerStatuses"]
        document["spec"]["containers"][0]["image"] = "y"
        file.write_text(json.dumps(document))
        await site.until("pod", "web-n1", holds=lambda pod: pod["spec"]["containers"][0]["image"] == "y")
        await site.runs("web-n1")
        file.unlink()
        await until(lambda: site.get("pod", "web-n1"), lambda found: not found)


@pytest.mark.spec("KA-9.3b")
async def test_a_node_goes_on_while_the_api_server_is_away(site: Site) -> None:
    async with site.devlet():
        await site.until("node", NODE)
        await site.apply(pod("a"))
        before = await site.runs("a")
        await site.plane.kill("kube-apiserver")
        document = {**pod("web"), "metadata": {"name": "web"}}
        (site.manifests / "web.json").write_text(json.dumps(document))
        await site.plane.start("kube-apiserver")
        await site.runs("web-n1")
        after = await site.runs("a")
        assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
        await site.apply(pod("b"))
        await site.runs("b")
