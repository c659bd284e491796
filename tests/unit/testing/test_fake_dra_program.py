import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.errors import Unavailable
from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.kinds import NODES, RESOURCE_SLICES
from devlet.plugins.channels import connection
from devlet.testing import warm_start
from devlet.testing.embedded import embedded_api
from devlet.wire.pluginregistration import api_pb2 as pb

pytestmark = [pytest.mark.anyio, pytest.mark.long]


def program(root: Path, *flags: str | Path) -> AbstractAsyncContextManager[RunningProcess]:
    words: list[str | Path] = [sys.executable, "-m", "devlet.testing.fake_dra_driver", "--root", root, *flags]
    return process(words, log=root / "log", ready=line("driver serving"), start=warm_start.start)


def sockets(root: Path) -> list[Path]:
    return list(root.rglob("*.sock"))


async def info(socket: Path) -> tuple[str, str, list[str]]:
    async with connection("p", socket, within=60, max_message=1 << 20) as wire:
        blob = await wire.call("/pluginregistration.Registration/GetInfo", b"", timeout=60)
    said = pb.PluginInfo.FromString(blob)
    return said.name, said.endpoint, list(said.supported_versions)


async def test_it_says_what_its_flags_say_and_removes_its_sockets_when_it_is_ended(root: Path) -> None:
    flags = ["--driver", "a.example.com", "--instance", "x", "--services", "v1,v1alpha4", "--health", "v1,v1alpha1"]
    async with program(root, *flags, "--service-path", root / "s.sock") as child:
        assert await info(root / "plugins_registry" / "a.example.com-x-reg.sock") == (
            "a.example.com",
            str(root / "s.sock"),
            ["v1.DRAPlugin", "v1alpha3.NodeService", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"],
        )
        child.send_signal(signal.SIGTERM)
        assert await child.wait() == 0
    assert not sockets(root)


async def test_it_advertises_anything_on_one_socket_and_leaves_it_when_it_is_killed(root: Path) -> None:
    async with program(root, "--one-socket", "--versions", "1.0.0,9", "--health") as child:
        socket = root / "plugins_registry" / "gpu.example.com-reg.sock"
        assert await info(socket) == ("gpu.example.com", "", ["1.0.0", "9"])
        child.send_signal(signal.SIGKILL)
        await child.wait()
    assert socket.is_socket()


@pytest.mark.parametrize(("flag", "text"), [("--services", "invalid"), ("--health", "there are v1 and v1alpha1")])
async def test_an_unknown_version_ends_it_at_once(root: Path, flag: str, text: str) -> None:
    with pytest.raises(Unavailable, match=text):
        async with program(root, flag, "v2"):
            pass


async def test_orders_that_it_cannot_read_end_it_at_the_start_and_later(root: Path) -> None:
    bad = root / "bad.json"
    bad.write_text("{")
    with pytest.raises(
        Unavailable, match=r"exited with 1 before it was ready(.|\n)*fake_dra_driver: orders /.*bad\.json"
    ):
        async with program(root, "--orders", bad):
            pass
    async with program(root, "--orders", root / "orders.json") as child:
        bad.replace(root / "orders.json")
        assert await child.wait() == 1


async def test_with_a_kubeconfig_it_publishes_its_devices(root: Path) -> None:
    async with embedded_api(root, arguments=["--node-name", "n1"]) as api:
        flags = ["--kubeconfig", str(api.kubeconfig), "--node-name", "n1", "--devices", "3"]
        async with program(root, *flags), connected(kubeconfig.connection([api.kubeconfig])) as cluster:
            (slice,) = (await cluster.list(RESOURCE_SLICES)).items
            node = await cluster.get(NODES, "n1")
    assert [device["name"] for device in slice["spec"]["devices"]] == ["dev-0", "dev-1", "dev-2"]
    assert [owner["uid"] for owner in slice["metadata"]["ownerReferences"]] == [node["metadata"]["uid"]]
