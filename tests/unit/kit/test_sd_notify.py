import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from devlet.kit import sd_notify
from devlet.kit.parts import running
from devlet.testing.waiting import deadline


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    address = f"@devlet-test-{os.getpid()}" if request.param == "abstract" else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        listener.settimeout(60)
        yield address, listener


def test_ready_and_stopping_are_sent(manager: tuple[str, socket.socket]) -> None:
    address, listener = manager
    notifier = sd_notify.from_environment({"NOTIFY_SOCKET": address})
    notifier.ready()
    notifier.stopping()
    assert [listener.recv(100), listener.recv(100)] == [b"READY=1", b"STOPPING=1"]


@pytest.mark.anyio
async def test_the_watchdog_is_fed_while_the_part_runs(manager: tuple[str, socket.socket]) -> None:
    address, listener = manager
    notifier = sd_notify.from_environment({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "2000"})
    async with running(notifier.watchdog):
        got = [await anyio.to_thread.run_sync(listener.recv, 100) for _ in range(3)]
    assert got == [b"WATCHDOG=1"] * 3


@pytest.mark.anyio
async def test_without_an_interval_the_watchdog_part_ends_at_once() -> None:
    with deadline():
        await sd_notify.Notifier("/nowhere").watchdog()
    assert sd_notify.Notifier("/nowhere").watchdog_interval == 0


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "soon"}, 0.0),
        ({"WATCHDOG_USEC": "²"}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_watchdog_interval_is_taken_if_it_is_meant_for_us(environ: dict[str, str], interval: float) -> None:
    assert sd_notify.from_environment({"NOTIFY_SOCKET": "/x", **environ}).watchdog_interval == interval


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1", "/a\0b"])
def test_an_address_we_cannot_use_counts_as_none(address: str) -> None:
    assert sd_notify.from_environment({"NOTIFY_SOCKET": address}) == sd_notify.Notifier()


def test_a_missing_service_manager_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "devlet"):
        sd_notify.Notifier(str(tmp_path / "gone")).ready()
    assert [r.getMessage() for r in caplog.records] == ["service manager not notified"]
