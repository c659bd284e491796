"""Our program around the kubelet's DRA packages does what bench/prepare.py and other tests rely on."""

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.plugins.channels import connection
from devlet.state.claim_checkpoint import ClaimEntry, Encoder, PreparedDevice, decode
from devlet.wire.dra_v1 import api_pb2 as dra
from devlet.wire.pluginregistration import api_pb2 as registration
from tests.support.peers.drivers import kubelet_claims_driver

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

DRIVER = "bench.example.com"
FILE = "dra_manager_state"
SECONDS = 60.0


@pytest.fixture
def program(peers: "Peers") -> Path:
    peers.need("kubelet-claims")
    return peers.binaries / "kubelet-claims"


def entry(name: str, pod: str) -> ClaimEntry:
    """As the driver answers, and the kubelet writes it."""
    uid = f"uid-of-{name}"
    device = PreparedDevice("pool", f"device-{uid}", None, ("gpu",), (f"{DRIVER}/gpu={uid}",))
    return ClaimEntry(uid, name, "default", frozenset([pod]), {DRIVER: (device,)})


async def bench(program: Path, root: Path, *flags: str) -> dict[str, Any]:
    socket = root / "plugins" / DRIVER / "dra.sock"
    command = [str(program), "bench", f"--directory={root}", f"--driver-socket={socket}", *flags]
    answer = await anyio.run_process(command, check=False)
    assert answer.returncode == 0, answer.stderr.decode()
    result: dict[str, Any] = json.loads(answer.stdout)
    return result


async def test_the_kubelets_manager_goes_on_from_a_checkpoint_of_devlet(program: Path, root: Path) -> None:
    claims = [entry(f"claim-{number}", f"pod-{number}") for number in range(10)]
    (root / FILE).write_bytes(Encoder().encode(claims))
    async with kubelet_claims_driver(program.parent, root):
        done = await bench(program, root, "--pods=4", "--concurrency=3")
    assert (done["existing"], done["prepared"], done["unprepared"]) == (10, 4, 4)
    assert done["prepare_rate"] == pytest.approx(4 / done["prepare_seconds"])
    assert done["unprepare_rate"] == pytest.approx(4 / done["unprepare_seconds"])
    found = decode((root / FILE).read_bytes()).claims or ()
    assert sorted(found, key=lambda claim: claim.name) == claims
    per_claim = (done["checkpoint_bytes"] - (root / FILE).stat().st_size) / 4
    assert 250 < per_claim < 500  # those that were prepared were in the file


async def test_the_state_to_begin_with_is_what_the_driver_would_have_answered(program: Path, root: Path) -> None:
    await anyio.run_process([program, "prepare-state", f"--directory={root}", "--existing=2"])
    expected = [entry(f"existing-{number}", f"existing-{number}") for number in range(2)]
    assert list(decode((root / FILE).read_bytes()).claims or ()) == expected


async def test_the_driver_is_found_prepares_and_unprepares(program: Path, root: Path) -> None:
    claim = dra.Claim(namespace="default", name="c", uid="uid-of-c")
    service = root / "plugins" / DRIVER / "dra.sock"
    async with kubelet_claims_driver(program.parent, root):
        path = root / "plugins_registry" / f"{DRIVER}-reg.sock"
        async with connection(DRIVER, path, within=SECONDS, max_message=1 << 20) as registrar:
            info = await registrar.call("/pluginregistration.Registration/GetInfo", b"", timeout=SECONDS)
        async with connection(DRIVER, service, within=SECONDS, max_message=1 << 20) as driver:
            request = dra.NodePrepareResourcesRequest(claims=[claim]).SerializeToString()
            prefix = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
            prepared = await driver.call(f"{prefix}/NodePrepareResources", request, timeout=SECONDS)
            unprepared = await driver.call(f"{prefix}/NodeUnprepareResources", request, timeout=SECONDS)
    assert registration.PluginInfo.FromString(info) == registration.PluginInfo(
        type="DRAPlugin",
        name=DRIVER,
        endpoint=str(service),
        supported_versions=["v1.DRAPlugin", "v1beta1.DRAPlugin"],
    )
    [device] = dra.NodePrepareResourcesResponse.FromString(prepared).claims[claim.uid].devices
    assert (device.device_name, list(device.cdi_device_ids)) == ("device-uid-of-c", [f"{DRIVER}/gpu=uid-of-c"])
    assert list(dra.NodeUnprepareResourcesResponse.FromString(unprepared).claims) == [claim.uid]
    assert not service.exists()


async def test_pods_without_claims_are_no_error(program: Path, root: Path) -> None:
    async with kubelet_claims_driver(program.parent, root):
        done = await bench(program, root, "--pods=2", "--claims=0")
    assert (done["existing"], done["prepared"], done["unprepared"]) == (0, 2, 2)


async def test_a_driver_that_is_not_there_fails_the_benchmark(program: Path, root: Path) -> None:
    command = [str(program), "bench", f"--directory={root}", f"--driver-socket={root}/none.sock", "--pods=1"]
    answer = await anyio.run_process(command, check=False)
    assert answer.returncode == 1
    assert (
        "kubelet-claims: bench: pod new-1: prepare dynamic resources: NodePrepareResources: " in answer.stderr.decode()
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["driver", "--socket=/tmp/s"], "driver: --registration-socket missing"),
        (["prepare-state", "--directory=/tmp", "--existing=-1"], "prepare-state: --existing is -1, expected 0 to 1"),
        (["bench", "--directory=/tmp", "--driver-socket=/s", "--pods=0"], "bench: --pods is 0, expected 1 to 100000"),
        (["bench", "--directory=/tmp"], "bench: --driver-socket missing"),
        (["test-driver", "--kubeconfig=/k", "--control=/c"], "test-driver: --node-name missing"),
        (["checkpoint-read"], "checkpoint-read: expected DIR..."),
        (["checkpoint-write"], "checkpoint-write: expected DIR..."),
    ],
)
def test_what_makes_no_sense_is_refused(program: Path, arguments: list[str], problem: str) -> None:
    answer = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"kubelet-claims: {problem}")


def test_an_unknown_command_gets_the_list_of_commands(program: Path) -> None:
    answer = subprocess.run([program, "read"], capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (2, "usage: kubelet-claims COMMAND")
