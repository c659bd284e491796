"""Programs as drivers of a node. Here they are the fakes; tests/flows and tests/peers have real ones."""

import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from devlet.errors import InvalidInput, Unavailable
from devlet.testing.driver_runner import DriverRunner, Paths
from devlet.testing.grpc_faults import Faults
from devlet.testing.node import Node
from devlet.testing.waiting import until

pytestmark = [pytest.mark.anyio]

GPU = "vendor.com/gpu"
DRIVER = "gpu.example.com"
PLUGIN = [sys.executable, "-m", "devlet.testing.fake_device_plugin", "--directory", "{device_plugins}"]
PLUGIN += ["--resource", GPU, "--devices", "2"]
DRA = [sys.executable, "-m", "devlet.testing.fake_dra_driver", "--root", "{root}", "--driver", DRIVER]
DRA += ["--cdi-dir", "{cdi}"]
TELLS = "import os; print(*(f'{k}={v}' for k, v in os.environ.items()), sep='\\n', flush=True)"


async def read(driver: DriverRunner) -> str:
    return driver.log


async def ending(driver: DriverRunner) -> int | None:
    return driver.returncode


async def test_a_device_plugin_is_registered_on_entry_and_again_after_kill_and_restart() -> None:
    async with Node.start() as node, node.driver(PLUGIN, resource=GPU) as driver:
        assert (await node.plugin_states())["vendor.com:gpu"]["state"] == "Connected"
        first = driver.pid
        await driver.kill()
        assert await ending(driver) == -signal.SIGKILL
        assert (await node.plugin_states())["vendor.com:gpu"]["state"] == "Disconnected"
        await driver.restart()
        assert driver.pid != first and await ending(driver) is None
        assert (await node.plugin_states())["vendor.com:gpu"]["state"] == "Connected"
        assert driver.log.count("plugin serving") == 2


async def test_a_dra_driver_is_registered_on_entry_and_gone_on_exit() -> None:
    async with Node.start() as node:
        async with node.driver(DRA, name=DRIVER) as driver:
            assert (await node.driver_states())[DRIVER]["state"] == "Connected"
            await driver.stop()
            assert (await node.driver_states())[DRIVER]["state"] != "Connected"
            await driver.restart()
        await node.until_left(DRIVER)


async def test_a_driver_with_faults_meets_them_and_survives_kill_and_restart() -> None:
    faults = Faults()
    late = faults.delay("GetInfo", 0.05)
    async with Node.start() as node, node.driver(DRA, name=DRIVER, faults=faults) as driver:
        assert late.hits == 1
        await driver.kill()
        await driver.restart()
        assert late.hits == 2
        assert (await node.driver_states())[DRIVER]["state"] == "Connected"


async def test_it_gets_the_paths_of_its_node() -> None:
    async with Node.start(name="n7") as node:
        command = [sys.executable, "-c", TELLS, "{node_name}", "{other}"]
        env = {"MINE": "{root}/mine"}
        async with node.driver(command, name=DRIVER, wait=False, env=env) as driver:
            await until(partial(read, driver), lambda log: "MINE=" in log)
        told = dict(line.split("=", 1) for line in driver.log.splitlines())
        paths = await node.driver_paths(DRIVER)
        assert paths.environment().items() <= told.items()
        assert told["MINE"] == f"{node.root}/mine"
        assert told["KUBECONFIG"] == str(node.root / f"drivers/{DRIVER}.kubeconfig")


def test_words_in_braces_are_filled_in_and_others_stay(root: Path) -> None:
    paths = Paths("n", root, root / "k", root / "d", root / "r", root / "p", root / "c")
    assert paths.fill("--a={node_name}:{kubeconfig} {unknown} {}") == f"--a=n:{root}/k {{unknown}} {{}}"


async def test_a_driver_that_ends_before_it_is_registered_is_reported_with_the_end_of_its_log() -> None:
    async with Node.start() as node:
        command = [sys.executable, "-c", "import sys; print('no such GPU', file=sys.stderr); sys.exit(3)"]
        with pytest.raises(Unavailable, match=r"(?s)gpu.example.com: it exited with 3 before .*no such GPU"):
            async with node.driver(command, name=DRIVER):
                pass


async def test_a_driver_that_never_registers_is_reported_with_the_end_of_its_log() -> None:
    async with Node.start() as node:
        command = ["sh", "-c", "echo thinking; exec sleep 600"]
        with pytest.raises(Unavailable, match=r"(?s)did not register: not within 3 s.*thinking"):
            async with node.driver(command, name=DRIVER, within=3.0):
                pass


@pytest.mark.parametrize("said", [{}, {"name": DRIVER, "resource": GPU}])
async def test_one_has_to_say_which_driver_it_is(said: dict[str, str]) -> None:
    async with Node.start() as node:
        with pytest.raises(InvalidInput, match="say which driver it is"):
            async with DriverRunner.start(node, ["true"], within=1.0, **said):  # type: ignore[arg-type]
                pass


async def test_a_program_that_is_not_there_is_named() -> None:
    async with Node.start() as node:
        with pytest.raises(InvalidInput, match="no-such-driver"):
            async with node.driver(["no-such-driver"], name=DRIVER):
                pass
        with pytest.raises(InvalidInput, match="needs a command"):
            async with node.driver([], name=DRIVER):
                pass


async def test_it_can_be_stopped_while_the_node_is_down() -> None:
    async with Node.start() as node, node.driver(PLUGIN, resource=GPU) as driver:
        await node.stop()
        await driver.kill()
        await node.restart()
        await driver.restart()
        await node.until_healthy(GPU, 2)


async def test_a_signal_reaches_it() -> None:
    async with Node.start() as node, node.driver(["sleep", "60"], wait=False) as driver:
        driver.send_signal(signal.SIGTERM)
        assert await until(partial(ending, driver), lambda code: code is not None) == -signal.SIGTERM
