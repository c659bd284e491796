import logging
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.node.claims.health_store import HealthStore
from devlet.state import health_file
from devlet.state.health_file import DeviceHealth

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CONTENT = {"gpu.example.com": (DeviceHealth("pool", "a", "Healthy", NOON, 30.0, "fine"),)}

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(tmp_path: Path) -> HealthStore:
    return HealthStore(tmp_path)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_written_health_is_read_after_a_restart(store: HealthStore, tmp_path: Path) -> None:
    assert await store.read() == {}
    await store.write(CONTENT)
    assert await HealthStore(tmp_path).read() == CONTENT
    assert os.listdir(tmp_path) == ["dra_health_state"]
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


async def test_a_write_does_not_recreate_a_removed_directory(tmp_path: Path) -> None:
    store = HealthStore(tmp_path / "removed")
    assert await store.read() == {}
    await store.write(CONTENT)
    assert os.listdir(tmp_path) == []


async def test_unchanged_health_is_not_written(store: HealthStore, tmp_path: Path) -> None:
    await store.read()
    await store.write({})
    assert os.listdir(tmp_path) == []  # a node without such drivers has no file
    await store.write(CONTENT)
    first = store.path.stat().st_ino
    await store.write(dict(CONTENT))
    assert store.path.stat().st_ino == first
    await store.write({})
    assert store.path.read_bytes() == b"{}"


@pytest.mark.spec("DN-4.12")
@pytest.mark.parametrize("content", [b"", b"{", b'{"d":{"Devices":[]}}'])
async def test_a_damaged_file_is_logged_and_replaced(
    store: HealthStore, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store.path.write_bytes(content)
    assert await store.read() == {}
    assert warnings(caplog) == ["health of devices not read"]
    await store.write({})
    assert store.path.read_bytes() == b"{}"


async def test_something_that_is_not_a_file_is_logged(store: HealthStore, caplog: pytest.LogCaptureFixture) -> None:
    store.path.mkdir()
    assert await store.read() == {}
    assert warnings(caplog) == ["health of devices not read"]


async def test_a_failed_write_is_a_warning_once_until_a_write_succeeds(
    store: HealthStore, caplog: pytest.LogCaptureFixture
) -> None:
    await store.read()
    store.path.mkdir()  # a file cannot replace a directory
    for _ in range(3):
        await store.write(CONTENT)
    assert warnings(caplog) == ["health of devices not written"]
    store.path.rmdir()
    await store.write(CONTENT)
    assert health_file.decode(store.path.read_bytes()) == CONTENT
    store.path.unlink()
    store.path.mkdir()
    await store.write({})
    assert len(warnings(caplog)) == 2


async def test_unfinished_writes_are_removed(store: HealthStore, tmp_path: Path) -> None:
    for name in (".dra_health_state.x1.tmp", ".dra_manager_state.x2.tmp"):
        (tmp_path / name).touch()
    await store.read()
    assert os.listdir(tmp_path) == [".dra_manager_state.x2.tmp"]
