"""The suite's kubelet greets what it finds, connects, and can be told to refuse."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from devlet.sanity.dra_kubelet import DraKubelet, Settings
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

WITHIN = 60.0


@asynccontextmanager
async def kubelet(root: Path, below: Path | None = None) -> AsyncIterator[DraKubelet]:
    (root / "plugins_registry").mkdir(exist_ok=True)
    async with anyio.create_task_group() as tasks:
        made = DraKubelet(root / "plugins_registry", root, tasks, Settings(dial=2.0, answer=5.0, below=below))
        await made.start()
        try:
            yield made
        finally:
            await made.stop()
            tasks.cancel_scope.cancel()


async def test_a_driver_is_found_and_told(root: Path) -> None:
    async with kubelet(root) as made, FakeDraDriver(root) as driver:
        assert await made.until(1, WITHIN)
        [greeting] = made.greetings
        assert (greeting.type, greeting.name, greeting.service) == ("DRAPlugin", driver.name, "v1.DRAPlugin")
        assert (greeting.problem, greeting.late) == ("", False)
        await driver.until_registered()
        [(_, client)] = made.drivers.values()
        await client.prepare()


async def test_a_driver_that_serves_outside_of_the_root_is_refused_and_not_called(root: Path) -> None:
    (root / "r").mkdir()
    driver = FakeDraDriver(root / "r", service_path=root / "elsewhere.sock")
    async with kubelet(root / "r", below=root / "r") as made, driver:
        assert "is not below devlet's root" in await driver.until_refused()
        assert await made.greetings.until(lambda: made.count > 0, WITHIN)
        assert (made.greetings[0].name, made.drivers) == (driver.name, {})


async def test_each_kubelet_registers_the_driver_again(root: Path) -> None:
    async with kubelet(root) as made, FakeDraDriver(root) as driver:
        assert await made.until(1, WITHIN)
        await made.stop()
        assert not made.drivers
        await made.start()
        assert await made.until(2, WITHIN)
        await driver.until_registered(2)


async def test_one_that_is_refused_is_greeted_again(root: Path) -> None:
    async with kubelet(root) as made, FakeDraDriver(root) as driver:
        made.refusals = 1
        await made.stop()
        await made.start()
        assert await made.until(1, WITHIN)
        assert "refused on purpose" in await driver.until_refused()
        await driver.until_registered()


async def test_one_without_known_versions_is_not_registered(root: Path) -> None:
    async with kubelet(root) as made, FakeDraDriver(root, versions=["1.0.0"]) as driver:
        assert "none of its supported versions is known: 1.0.0" in await driver.until_refused()
        assert not made.drivers


async def test_a_driver_that_ends_is_forgotten(root: Path) -> None:
    async with kubelet(root) as made:
        async with FakeDraDriver(root):
            assert await made.until(1, WITHIN)
        await until(lambda: _none(made))


async def _none(made: DraKubelet) -> bool:
    return not made.drivers


async def test_a_relative_endpoint_is_looked_for_all_the_same(root: Path) -> None:
    driver = FakeDraDriver(root)
    driver.endpoint = "dra.sock"
    async with driver, kubelet(root) as made:
        assert await made.until(1, WITHIN)
        assert made.greetings[0].path == driver.path


async def test_one_that_was_not_found_can_be_adopted(root: Path) -> None:
    async with kubelet(root) as made, FakeDraDriver(root, autostart=False) as driver:
        await driver.start_service()
        await made.adopt(driver.name, driver.path)
        [(greeting, client)] = made.drivers.values()
        assert (greeting.adopted, greeting.is_registered) == (True, False)
        await client.prepare()


async def test_it_can_be_asked_without_being_registered(root: Path) -> None:
    async with kubelet(root) as made, FakeDraDriver(root) as driver:
        assert await made.until(1, WITHIN)
        assert (await made.ask(driver.registry_path)).name == driver.name
        assert made.count == 1
