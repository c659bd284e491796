"""DRA drivers that cannot be driven: what is said of them, and what is looked at nonetheless."""

import sys
from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.sanity.check import CannotTell
from devlet.sanity.driver import Command
from devlet.sanity.rig_dra import Settings
from devlet.sanity.stand_dra import DraStand
from devlet.testing import warm_start
from devlet.testing.fake_dra_cluster import publish
from devlet.testing.fake_dra_driver import FakeDraDriver

pytestmark = [pytest.mark.anyio]

QUICK = Settings(start=0.5, wait=0.5, settle=0.1, quiet=0.1, dial=0.5, answer=2.0)
PLACES = ["--root={root}", "--cdi={cdi}", "--kubeconfig={kubeconfig}", "--node={node}"]


def python(module: str, *words: str) -> Command:
    return Command([sys.executable, "-m", f"tests.support.mutants.{module}", *PLACES, *words], start=warm_start.start)


async def trouble(*words: str, settings: Settings = QUICK) -> str:
    async with DraStand(Command(words), settings=settings).open() as rig:
        with pytest.raises(CannotTell, match="did not come up"):
            _ = rig.client
        return rig.trouble


async def test_a_driver_that_is_never_found_is_reported() -> None:
    assert await trouble("sleep", "60") == "the driver was not registered within 0.5 s; its log is empty"


async def test_a_driver_that_exits_at_once_is_reported_with_its_log() -> None:
    said = await trouble("sh", "-c", "echo no device; exit 4", settings=Settings())
    assert said == "the driver exited with 4 before it was registered; the end of its log:\nno device"


async def test_one_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await trouble("/no/such/driver")
    assert caught.value.subgroup(InvalidInput)


@pytest.mark.long
async def test_one_that_serves_and_is_not_found_can_be_called() -> None:
    command = python("faulty_dra_driver", "--bug=DRA-REG-1")
    async with DraStand(command, settings=Settings(start=8.0, settle=0.1)).open() as rig:
        assert "was not registered" in rig.trouble
        assert rig.name == "led.example.com"
        async with rig.claim() as claim:
            assert await rig.client.prepared(claim.ref)


async def test_a_driver_that_did_not_come_up_is_not_waited_for_again() -> None:
    stand = DraStand(Command(["sleep", "60"]), settings=QUICK)
    async with stand.open() as first:
        assert first.driver.starts == 1
    async with stand.open() as second:
        assert second.driver.starts == 0
        assert second.trouble == first.trouble


async def test_one_that_runs_already_is_attached_to(root: Path) -> None:
    async with DraStand(Command(["sleep", "60"]), settings=QUICK).open() as cluster:
        node = cluster.places.node
        await publish(cluster.cluster, "gpu.example.com", node, 2, node_uid=cluster.api.node_uid)
        stand = DraStand(
            registry=root / "plugins_registry", kubeconfig=cluster.places.kubeconfig, node=node, settings=Settings()
        )
        async with FakeDraDriver(root) as driver, stand.open() as rig:
            assert (rig.trouble, rig.name) == ("", driver.name)
            async with rig.claim() as claim:
                await rig.client.prepared(claim.ref)
            with pytest.raises(CannotTell, match="the driver is attached"):
                await rig.driver.kill()


async def test_roots_that_are_kept_stay_and_must_be_short(root: Path) -> None:
    async with DraStand(Command(["sleep", "60"]), settings=QUICK, keep=root).open():
        pass
    assert (root / "001" / "plugins_registry").is_dir()
    with pytest.raises(InvalidInput, match="too long for sockets"):
        async with DraStand(Command(["sleep", "60"]), keep=root / ("x" * 80)).open():
            pass
