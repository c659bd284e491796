"""What an SDK driver leaves on the node is what drivers in Go leave there: the lock that excludes each other's calls,
and device metadata."""

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from devlet.cluster.client import MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.objects.documents import view
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.claim import ResourceClaim
from devlet.plugins.channels import Connection, connection
from devlet.sdk.exclusion import LOCK_NAME, Exclusion
from devlet.sdk.metadata import read
from devlet.sdk.metadata_files import MetadataFiles
from devlet.sdk.values import Claim, ClaimRef, Prepared
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from devlet.wire.dra_v1 import api_pb2 as dra
from tests.support.cluster_contract import specimens
from tests.support.peers.drivers import dra_test_driver, hooked_test_driver
from tests.support.peers.heartbeats import beating_node
from tests.support.peers.hooked_driver import Call, HookedDriver, Method

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

NAME = "test-driver.cdi.k8s.io"
SERVICE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
SECONDS = 60.0
F_OFD_GETLK = 36
GONE = dra.Claim(namespace="default", name="gone", uid="gone")


@pytest.fixture(scope="module")
async def api(peers: "Peers") -> AsyncIterator[EmbeddedApi]:
    peers.need("kubelet-claims", "test-driver")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with embedded_api(path) as running:
        yield running
    shutil.rmtree(path)


@pytest.fixture(scope="module")
async def cluster(api: EmbeddedApi) -> AsyncIterator[RemoteCluster]:
    settings = Settings(qps=0)
    async with connected(kubeconfig.connection([api.kubeconfig]), settings) as cluster, beating_node(cluster, "n1"):
        yield cluster


@pytest.fixture
async def driver(peers: "Peers", api: EmbeddedApi, cluster: RemoteCluster, root: Path) -> AsyncIterator[HookedDriver]:
    """One of several instances, so that it locks a file."""
    async with hooked_test_driver(peers.binaries, root, api.kubeconfig, node_name="n1", uid="a") as running:
        yield running


@pytest.fixture
async def service(driver: HookedDriver, root: Path) -> AsyncIterator[Connection]:
    path = root / "plugins" / NAME / "dra-a.sock"
    async with connection(NAME, path, within=SECONDS, max_message=1 << 20) as open_connection:
        yield open_connection


@pytest.fixture
def lock(root: Path) -> Path:
    return root / "plugins" / NAME / LOCK_NAME


async def unprepare(service: Connection) -> None:
    """Of a claim that nobody knows, which is a success. The driver holds its lock for it."""
    request = dra.NodeUnprepareResourcesRequest(claims=[GONE])
    await service.call(f"{SERVICE}/{Method.UNPREPARE}", request.SerializeToString(), timeout=SECONDS)


def is_locked(path: Path) -> bool:
    with open(path, "rb+") as file:
        asked = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_ = struct.unpack("hhqqi0q", fcntl.fcntl(file, F_OFD_GETLK, asked))
    return bool(kind != fcntl.F_UNLCK)


@pytest.mark.spec("DN-5.6c")
async def test_while_a_driver_in_go_unprepares_ours_waits(
    driver: HookedDriver, service: Connection, lock: Path
) -> None:
    order: list[str] = []

    async def go_on() -> None:
        async with Exclusion(lock):
            order.append("ours")

    await driver.block(Method.UNPREPARE)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(unprepare, service)
        await until(partial(anyio.to_thread.run_sync, lambda: lock.exists() and is_locked(lock)))
        tasks.start_soon(go_on)
        await driver.calls()  # some time passes, in which we could have entered
        await checkpoint()
        assert order == []
        order.append("theirs")
        await driver.unblock(Method.UNPREPARE)
    assert order == ["theirs", "ours"]


@pytest.mark.spec("DN-5.6c")
async def test_while_ours_has_the_lock_a_driver_in_go_waits(
    driver: HookedDriver, service: Connection, lock: Path
) -> None:
    async with anyio.create_task_group() as tasks:
        async with Exclusion(lock):
            tasks.start_soon(unprepare, service)
            await until(partial(driver.calls, Method.UNPREPARE))
            assert await driver.prepared() == []  # the driver itself is idle: the call has not got to it
            [call] = await driver.calls(Method.UNPREPARE)
            assert call.stage == "running"
        done: list[Call] = await until(partial(driver.calls, Method.UNPREPARE), lambda calls: calls[-1].stage == "done")
    assert done[-1].code == "OK"
    assert not is_locked(lock)


def namespace() -> str | None:
    """How to run a command where it may mount, or None if that is not allowed here."""
    for command in ("unshare --mount", "unshare --user --map-root-user --mount"):
        if shutil.which("unshare") and subprocess.run([*command.split(), "true"], capture_output=True).returncode == 0:
            return command
    return None


def with_another_var_run(program: Path, root: Path) -> Path:
    """A folder with the program. It writes metadata to /var/run/cdi whatever its flags say, and sees ROOT/run there."""
    (root / "run").mkdir()
    (root / "bin").mkdir()
    mount = f'mount --bind {root}/run "$(readlink -f /var/run)"'
    script = f'#!/bin/sh\nexec {namespace()} sh -c \'{mount} && exec {program} "$@"\' sh "$@"\n'
    (root / "bin" / program.name).write_text(script)
    (root / "bin" / program.name).chmod(0o755)
    return root / "bin"


@pytest.mark.skipif(namespace() is None, reason="no mount namespace for another /var/run")
@pytest.mark.spec("DN-5.8c")
async def test_metadata_are_those_that_a_driver_in_go_writes(
    peers: "Peers", api: EmbeddedApi, cluster: RemoteCluster, root: Path
) -> None:
    made = await cluster.create(RESOURCE_CLAIMS, specimens.claim(specimens.unique("c")), "default")
    name, uid = made["metadata"]["name"], made["metadata"]["uid"]
    device = {"request": "gpu", "driver": NAME, "pool": "n1", "device": "device-00"}
    status = MergePatch({"status": {"allocation": {"devices": {"results": [device]}}}})
    document = await cluster.patch(RESOURCE_CLAIMS, name, status, "default", subresource="status")
    theirs = root / "plugins" / NAME / "dra-device-metadata" / f"default_{name}" / "gpu" / "metadata.json"

    binaries = with_another_var_run(peers.binaries / "test-driver", root)
    flags = ["--enable-device-metadata"]
    async with dra_test_driver(binaries, root, api.kubeconfig, node_name="n1", flags=flags):
        path = root / "plugins" / NAME / "dra.sock"
        async with connection(NAME, path, within=SECONDS, max_message=1 << 20) as service:
            request = dra.NodePrepareResourcesRequest(claims=[dra.Claim(namespace="default", name=name, uid=uid)])
            blob = await service.call(f"{SERVICE}/{Method.PREPARE}", request.SerializeToString(), timeout=SECONDS)
    [answer] = dra.NodePrepareResourcesResponse.FromString(blob).claims[uid].devices

    claim = view(ResourceClaim, document)
    ours = MetadataFiles(NAME, root / "ours", root / "ours-cdi")
    attributes = {"driverName": NAME, "pool": "n1", "device": "device-00"}
    prepared = Prepared(claim.results[0], metadata=attributes)
    [ids] = ours.write(Claim(ClaimRef("default", name, uid), claim.results, (), claim, document), [prepared])

    assert [*ids] == list(answer.cdi_device_ids)[1:]
    host = ours.path(uid, "gpu")
    assert await anyio.Path(host).read_text() == await anyio.Path(theirs).read_text()
    assert read(theirs) == read(host)
    spec = f"{NAME}_metadata_{uid}_gpu.json"
    their_spec = (await anyio.Path(root / "run" / "cdi" / spec).read_text()).replace(str(theirs), str(host))
    assert msgspec.json.decode(await anyio.Path(root / "ours-cdi" / spec).read_text()) == msgspec.json.decode(
        their_spec
    )
