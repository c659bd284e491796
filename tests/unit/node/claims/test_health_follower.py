import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from devlet.kit.parts import running
from devlet.node.claims.health import Health
from devlet.node.claims.health_follower import HealthFollower, Settings
from devlet.objects.identifiers import ClaimName, ClaimUID, DeviceIdentity, DeviceName, DriverName, PodUID, PoolName
from devlet.plugins.dra import ClaimRef, DeviceReport, HealthService
from devlet.plugins.dra_registry import DraRegistry
from devlet.state import health_file
from devlet.state.health_file import DeviceHealth
from devlet.testing.dra_script import WATCH
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

DRIVER = DriverName("gpu.example.com")
HEALTHY, UNHEALTHY, UNKNOWN = Health("Healthy"), Health("Unhealthy"), Health("Unknown")
BOTH = (HealthService.V1, HealthService.V1ALPHA1)


def device(name: str) -> DeviceIdentity:
    return DeviceIdentity(DRIVER, PoolName("pool"), DeviceName(name))


A, B = device("a"), device("b")


def says(name: str, status: str = "Healthy", timeout: float = 30.0, message: str = "") -> DeviceReport:
    return DeviceReport("pool", name, status, timeout, message)


class Node:
    """A registry and a follower on one clock. `pods` are the users of each device."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.registry = DraRegistry(self.clock)
        self.pods: dict[str, Collection[DeviceIdentity]] = {"pod-a": (A,)}
        self.told: list[set[str]] = []
        self.follower = self.make()

    def make(self) -> HealthFollower:
        return HealthFollower(
            self.registry, self.root, self.clock, Settings(), users=self._users, on_change=self._on_change
        )

    def _users(self, devices: Collection[DeviceIdentity]) -> frozenset[PodUID]:
        return frozenset(PodUID(pod) for pod, has in self.pods.items() if set(has) & set(devices))

    def _on_change(self, pods: frozenset[PodUID]) -> None:
        self.told.append(set(pods))

    async def register(self, driver: FakeDraDriver) -> None:
        await self.registry.register(driver.name, driver.path, driver.info().supported_versions)

    async def deregister(self, driver: FakeDraDriver) -> None:
        await self.registry.deregister(driver.name, driver.path)

    async def until_health(self, expected: Health, of: DeviceIdentity = A) -> None:
        async def read() -> Health:
            return self.follower.health(of)

        await until(read, lambda found: found == expected)

    async def until_notified(self, times: int) -> None:
        async def read() -> int:
            return len(self.told)

        await until(read, lambda found: found >= times)

    async def until_written(self, holds: Callable[[dict[str, Sequence[DeviceHealth]]], bool]) -> None:
        async def read() -> dict[str, Sequence[DeviceHealth]]:
            path = self.root / "dra_health_state"
            return dict(health_file.decode(path.read_bytes())) if path.exists() else {}

        await until(read, holds)

    async def pass_time(self, seconds: float, *, sleepers: int = 1) -> None:
        await self.clock.sleeping(sleepers)
        await self.clock.advance(seconds)


@pytest.fixture
async def node(root: Path) -> AsyncIterator[Node]:
    node = Node(root)
    async with running(node.registry.run):
        yield node


@asynccontextmanager
async def serving(
    node: Node, *reports: DeviceReport, services: Sequence[HealthService] = BOTH, instance: str = ""
) -> AsyncIterator[FakeDraDriver]:
    """Register a driver."""
    driver = FakeDraDriver(node.root, DRIVER, health_services=services, instance=instance, autostart=False)
    driver.health.set(reports)
    async with driver:
        await driver.start_service()
        await node.register(driver)
        yield driver


@pytest.mark.spec("DN-9.2.29")
@pytest.mark.spec("DN-8.4")
async def test_a_change_of_health_notifies_the_pods_of_the_device(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a")) as driver:
        await node.until_health(HEALTHY)
        driver.health.set([says("a", "Unhealthy")])
        await node.until_health(UNHEALTHY)
        driver.health.set([says("a")])
        await node.until_health(HEALTHY)
        assert node.told == [{"pod-a"}] * 3


@pytest.mark.spec("DN-9.3.27")
async def test_a_change_of_the_message_notifies_the_pods_of_the_device(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a")) as driver:
        for status, message in (("Unhealthy", "hot"), ("Unhealthy", "hotter"), ("Healthy", "")):
            driver.health.set([says("a", status, message=message)])
            await node.until_health(Health(status, message))
        assert node.told[-3:] == [{"pod-a"}] * 3


@pytest.mark.spec("DN-10.H15")
async def test_a_change_of_an_unused_device_is_recorded_without_a_notification(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("b")) as driver:
        await node.until_health(HEALTHY, of=B)
        driver.health.set([says("b", "Unhealthy")])
        await node.until_health(UNHEALTHY, of=B)
        assert node.told == []


@pytest.mark.spec("DN-10.H16")
async def test_a_repeated_report_does_not_notify(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a")) as driver:
        await node.until_health(HEALTHY)
        driver.health.set([says("a")])
        driver.health.set([says("a"), says("b")])
        await node.until_health(HEALTHY, of=B)
        assert node.told == [{"pod-a"}]


@pytest.mark.spec("DN-10.H17")
@pytest.mark.spec("DN-9.2.33")
async def test_all_pods_of_the_devices_are_notified_together(node: Node) -> None:
    node.pods = {"pod-1": (A,), "pod-2": (A,), "pod-3": (B,), "pod-4": ()}
    async with running(node.follower.run), serving(node) as driver:
        await driver.health.until_streams(1)
        for status in ("Healthy", "Unhealthy"):
            driver.health.set([says("a", status), says("b", status)])
            await node.until_health(Health(status), of=B)
        assert node.told == [{"pod-1", "pod-2", "pod-3"}] * 2


@pytest.mark.spec("DN-8.1")
@pytest.mark.spec("DN-11.06")
async def test_a_driver_without_a_health_service_is_not_called(node: Node) -> None:
    async with running(node.follower.run), serving(node, services=()) as silent:
        async with serving(node, says("a"), instance="new") as driver:
            await node.until_health(HEALTHY)
            assert len(driver.asked(WATCH)) == 1
        assert silent.asked(WATCH) == []


@pytest.mark.spec("DN-11.29")
@pytest.mark.spec("DN-8.1")
@pytest.mark.parametrize(
    "offered", [[HealthService.V1], [HealthService.V1ALPHA1], [HealthService.V1ALPHA1, HealthService.V1]]
)
async def test_every_version_of_the_health_service_is_supported(node: Node, offered: list[HealthService]) -> None:
    async with running(node.follower.run), serving(node, says("a"), services=offered) as driver:
        await node.until_health(HEALTHY)
        (call,) = driver.asked(WATCH)
        assert call.path.startswith(f"/{offered[-1]}/")


@pytest.mark.spec("DN-8.1")
@pytest.mark.spec("DN-10.H18")
@pytest.mark.parametrize("code", ["", "INTERNAL", "UNAVAILABLE", "CANCELLED"])
async def test_a_stream_that_ended_is_reopened_after_a_pause(node: Node, code: str) -> None:
    async with running(node.follower.run), serving(node, says("a")) as driver:
        await node.until_health(HEALTHY)
        driver.health.end(code, "on purpose")
        await node.until_health(UNKNOWN)
        await node.pass_time(4.9)
        assert len(driver.asked(WATCH)) == 1
        await node.pass_time(0.1)
        await node.until_health(HEALTHY)
        assert len(driver.asked(WATCH)) == 2


@pytest.mark.spec("DN-11.08")
async def test_the_end_of_a_stream_notifies_the_pods(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a"), says("b")) as driver:
        await node.until_notified(1)
        driver.health.end()
        await node.until_notified(2)
        assert node.told == [{"pod-a"}] * 2


@pytest.mark.spec("DN-11.08")
async def test_an_expired_report_notifies_the_pods(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a", timeout=10), says("b", timeout=600)):
        await node.until_health(HEALTHY, of=B)
        await node.pass_time(9)
        assert node.told == [{"pod-a"}]
        assert node.follower.health(A) == HEALTHY
        await node.pass_time(1)
        assert node.told == [{"pod-a"}] * 2
        assert (node.follower.health(A), node.follower.health(B)) == (UNKNOWN, HEALTHY)
        await node.until_written(lambda found: [each.device for each in found.get(DRIVER, ())] == ["b"])


async def test_a_shorter_timeout_that_is_reported_later_moves_the_timer(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a", timeout=600)) as driver:
        await node.until_notified(1)
        await node.clock.sleeping(1)
        driver.health.set([says("a", timeout=5)])
        await node.until_notified(2)
        await node.pass_time(5)
        assert node.told == [{"pod-a"}] * 3
        assert node.follower.health(A) == UNKNOWN


async def test_a_report_that_is_repeated_in_time_does_not_expire(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a", timeout=10)) as driver:
        await node.until_health(HEALTHY)
        for turn in range(5):
            await node.pass_time(6)
            driver.health.set([says("a", timeout=10), says(f"mark-{turn}")])
            await node.until_health(HEALTHY, of=device(f"mark-{turn}"))
            assert node.follower.health(A) == HEALTHY
        assert node.told == [{"pod-a"}]


@pytest.mark.spec("DN-9.2.31")
async def test_the_health_of_a_stopped_driver_is_unknown_until_it_is_back(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a")) as driver:
        await node.until_health(HEALTHY)
        await driver.stop_service()
        await node.until_health(UNKNOWN)
        await driver.start_service()
        await node.pass_time(5)

        async def connected() -> bool:
            if not node.registry.is_usable(DRIVER):
                return False
            await node.clock.advance(5)  # it may have been too early
            return node.follower.health(A) == HEALTHY

        await until(connected)
        assert node.told[:2] == [{"pod-a"}] * 2


@pytest.mark.spec("DN-8.3")
async def test_the_health_of_a_deregistered_driver_is_unknown_and_it_is_not_called(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a")) as driver:
        await node.until_health(HEALTHY)
        await node.deregister(driver)
        await node.until_health(UNKNOWN)
        await driver.health.until_streams(0)
        await node.clock.advance(60)
        assert len(driver.asked(WATCH)) == 1
        assert node.told == [{"pod-a"}] * 2


@pytest.mark.spec("DN-11.07")
async def test_an_update_of_the_driver_does_not_change_the_health(node: Node) -> None:
    async with running(node.follower.run), serving(node, says("a")) as old:
        await node.until_health(HEALTHY)
        async with serving(node, says("a"), says("b"), instance="new") as new:
            await node.until_health(HEALTHY, of=B)
            await node.deregister(old)
            await old.health.until_streams(0)
            new.health.set([says("a"), says("c")])
            await node.until_health(HEALTHY, of=device("c"))
            assert node.follower.health(A) == HEALTHY
            assert node.told == [{"pod-a"}]


@pytest.mark.spec("DN-8.1")
@pytest.mark.spec("DN-11.06")
async def test_a_driver_without_its_advertised_health_service_is_called_once_without_a_warning(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    driver = FakeDraDriver(node.root, DRIVER, versions=["v1.DRAPlugin", *BOTH], autostart=False)
    async with running(node.follower.run), driver:
        await driver.start_service()
        with caplog.at_level(logging.INFO):
            await node.register(driver)
            await until(said(caplog, "health service is advertised but not implemented"))
        await node.clock.advance(60)
        assert warnings(caplog) == []
        assert caplog.messages.count("health service is advertised but not implemented") == 1
    assert not (node.root / "dra_health_state").exists()


def said(caplog: pytest.LogCaptureFixture, text: str, times: int = 1) -> Callable[[], Awaitable[bool]]:
    async def read() -> bool:
        return caplog.messages.count(text) >= times

    return read


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.spec("DN-11.06")
async def test_a_repeated_failure_is_logged_as_a_warning_once(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "devlet.node.claims")
    async with running(node.follower.run), serving(node) as driver:
        await driver.health.until_streams(1)
        driver.fail(WATCH, "INTERNAL", "out of order")
        driver.health.end("INTERNAL", "out of order")
        for turn in range(1, 5):
            await until(said(caplog, "health stream ended", turn))
            await node.pass_time(5)
        await until(said(caplog, "health stream ended", 5))
        assert warnings(caplog) == ["health stream ended"]
        driver.recover(WATCH)
        await node.pass_time(5)
        await driver.health.until_streams(1)
        await node.clock.advance(60)
        driver.health.end("INTERNAL", "out of order")
        await until(said(caplog, "health stream ended", 6))
        assert len(warnings(caplog)) == 2


@pytest.mark.spec("DN-10.H05")
async def test_health_is_valid_after_a_restart_until_its_timeout(node: Node) -> None:
    async with serving(node, says("a", "Unhealthy", message="hot")) as driver:
        async with running(node.follower.run):
            await node.until_health(Health("Unhealthy", "hot"))
            await node.clock.advance(20)
            driver.health.set([says("a", "Unhealthy", message="hot"), says("b")])
            await node.until_health(HEALTHY, of=B)
        await node.deregister(driver)
    await node.clock.advance(20)  # from the last report on, not from the last change
    node.follower = node.make()
    async with running(node.follower.run):
        assert node.follower.health(A) == Health("Unhealthy", "hot")
        node.told.clear()
        await node.pass_time(10)
        assert node.follower.health(A) == UNKNOWN
        assert node.told == [{"pod-a"}]


async def test_changes_are_saved_while_the_follower_runs(node: Node) -> None:
    started = node.clock.now()
    async with running(node.follower.run), serving(node, says("a")) as driver:
        expected = DeviceHealth("pool", "a", "Healthy", started, 30.0)
        await node.until_written(lambda found: found == {DRIVER: (expected,)})
        inode = (node.root / "dra_health_state").stat().st_ino
        await node.clock.advance(1)
        driver.health.set([says("a")])
        driver.health.set([says("a"), says("b")])
        await node.until_written(lambda found: len(found[DRIVER]) == 2)
        assert (node.root / "dra_health_state").stat().st_ino != inode
        driver.health.end()
        await node.until_written(lambda found: found == {})
    assert started + timedelta(seconds=1) == node.clock.now()


async def test_a_damaged_file_does_not_stop_the_follower(node: Node) -> None:
    (node.root / "dra_health_state").write_bytes(b"{")
    async with running(node.follower.run), serving(node, says("a")):
        await node.until_health(HEALTHY)
        await node.until_written(lambda found: bool(found))


@pytest.mark.spec("DN-9.2.30")
@pytest.mark.spec("DN-9.2.32")
async def test_health_and_calls_share_one_connection_even_after_a_reconnect(node: Node) -> None:
    claim = ClaimRef("default", ClaimName("c"), ClaimUID("u"))
    async with running(node.follower.run), serving(node, says("a")) as driver:
        await node.until_health(HEALTHY)
        await node.registry.pick(DRIVER).prepare([claim])
        assert driver.connections == 1
        driver.service.proxy.cut()
        await node.until_health(UNKNOWN)

        async def back() -> bool:
            await node.clock.advance(5)
            return node.follower.health(A) == HEALTHY

        await until(back)
        await node.registry.pick(DRIVER).prepare([claim])
        assert driver.connections == 2


async def test_drivers_that_registered_before_the_start_are_followed(node: Node) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serving(node, says("a")))
        await stack.enter_async_context(serving(node, says("b"), instance="new"))
        async with running(node.follower.run):
            await node.until_health(HEALTHY, of=A)
            await node.until_health(HEALTHY, of=B)
