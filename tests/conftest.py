"""Fixtures for all tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory with a short path: sockets below it must stay under 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="dv"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
