"""A store of its own for each test, on a real file."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devlet.cluster.store.ledger import Ledger, open_file
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.testing.fake_clock import FakeClock


@pytest.fixture
def path(root: Path) -> Path:
    return root / "cluster.db"


@pytest.fixture
async def store(path: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(path) as store:
        yield store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@contextmanager
def running(path: Path, clock: FakeClock, settings: Settings) -> Iterator[Ledger]:
    file = open_file(path, clock)
    ledger = Ledger(file, settings, clock)
    try:
        with ledger.running():
            yield ledger
    finally:
        file.close()


@pytest.fixture
async def ledger(path: Path, clock: FakeClock, anyio_backend: str) -> AsyncIterator[Ledger]:
    with running(path, clock, Settings()) as ledger:
        yield ledger
