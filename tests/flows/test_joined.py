"""Nodes that have joined another devlet, as processes of their own: with the credentials of `devlet token node`, and
with a service account that has the roles in deploy/ and no others."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
import yaml

from devlet.objects.documents import Document
from devlet.testing import warm_start
from devlet.testing.node_process import PODS, NodeProcess
from devlet.testing.waiting import until

pytestmark = [pytest.mark.anyio]

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
TOKEN = "/api/v1/namespaces/devlet-system/serviceaccounts/devlet-node/token"
WEB = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}


@pytest.fixture
async def first(root: Path) -> AsyncIterator[NodeProcess]:
    """The one with the API."""
    (root / "1").mkdir()
    async with NodeProcess(root / "1") as running:
        yield running


@pytest.fixture
def manifests(root: Path) -> Path:
    path = root / "manifests"
    path.mkdir()
    return path


async def devlet(node: NodeProcess, *arguments: str) -> str:
    command = [sys.executable, "-m", "devlet", *arguments, "--root", str(node.root)]
    done = await anyio.to_thread.run_sync(warm_start.run, command)
    done.check_returncode()
    return done.stdout


@asynccontextmanager
async def joined(credentials: str, manifests: Path) -> AsyncIterator[NodeProcess]:
    """Node n2."""
    root = manifests.parent
    file = root / "n2.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(credentials)
    (root / "2").mkdir()
    arguments = ["--node-name", "n2", "--kubeconfig", str(file), "--static-pod-path", str(manifests)]
    async with NodeProcess(root / "2", arguments=arguments) as node:
        yield node


async def service_account(first: NodeProcess, *roles: str) -> str:
    """A kubeconfig of the account of node agents."""
    for role in roles:
        await devlet(first, "apply", "-f", str(DEPLOY / role))
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await first.call("POST", TOKEN, request)
    config = yaml.safe_load((first.root / "kubeconfig").read_text())
    config["users"][0]["user"] = {"token": answer["status"]["token"]}
    return json.dumps(config)


async def pods(first: NodeProcess) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in await first.items(PODS)}


async def mirror(first: NodeProcess, *, other_than: str = "") -> Document:
    """Of the static pod, when it runs; with another uid than that."""

    def runs(found: dict[str, Document]) -> bool:
        pod = found.get("web-n2")
        return pod is not None and pod["status"]["phase"] == "Running" and pod["metadata"]["uid"] != other_than

    return (await until(lambda: pods(first), runs))["web-n2"]


async def test_the_static_pods_of_a_joined_node_have_mirrors_which_come_back_and_go_with_their_files(
    first: NodeProcess, manifests: Path
) -> None:
    async with joined(await devlet(first, "token", "node", "n2"), manifests) as second:
        (manifests / "web.json").write_text(json.dumps(WEB))
        seen = await mirror(first)
        assert (seen["spec"]["nodeName"], seen["metadata"]["ownerReferences"][0]["name"]) == ("n2", "n2")
        await first.call("DELETE", f"{PODS}/web-n2")
        await mirror(first, other_than=seen["metadata"]["uid"])
        (manifests / "web.json").unlink()
        await until(lambda: pods(first), lambda found: not found)
        assert "forbidden" not in second.log.lower()


async def test_a_joined_node_says_where_the_credentials_of_its_drivers_are_made(
    first: NodeProcess, manifests: Path
) -> None:
    driver = ("token", "driver", "gpu.example.com")
    async with joined(await devlet(first, "token", "node", "n2"), manifests) as second:
        command = [sys.executable, "-m", "devlet", *driver, "--root", str(second.root)]
        refused = (await anyio.to_thread.run_sync(warm_start.run, command)).stderr
        assert "run `devlet token driver gpu.example.com --node-name n2` on its machine" in refused
        made = Path((await devlet(first, *driver, "--node-name", "n2")).strip())
        assert made == first.root / "drivers" / "gpu.example.com@n2.kubeconfig"


async def test_a_node_agent_with_a_service_account_shows_its_static_pods_if_it_has_the_role_for_it(
    first: NodeProcess, manifests: Path
) -> None:
    credentials = await service_account(first, "rbac-node.yaml", "rbac-static-pods.yaml")
    (manifests / "web.json").write_text(json.dumps(WEB))
    async with joined(credentials, manifests) as second:
        await mirror(first)
        (manifests / "web.json").unlink()
        await until(lambda: pods(first), lambda found: not found)
        assert "forbidden" not in second.log.lower()


async def test_a_node_agent_with_a_service_account_creates_no_pods_otherwise(
    first: NodeProcess, manifests: Path
) -> None:
    credentials = await service_account(first, "rbac-node.yaml")
    (manifests / "web.json").write_text(json.dumps(WEB))
    async with joined(credentials, manifests) as second:

        async def log() -> str:
            return second.log

        refused = 'cannot create resource \\"pods\\"'
        await until(log, lambda text: refused in text)
        assert await pods(first) == {}
        assert all("mirror pod" in line for line in second.log.splitlines() if "forbidden" in line)
