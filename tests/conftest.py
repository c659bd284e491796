"""Fixtures for all tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from devlet.testing.grpc_loop import GrpcLoop

# A slow machine fails nothing: what counts is what a property says, not how fast its examples are drawn.
settings.register_profile("devlet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("devlet")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": GrpcLoop}


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory with a short path: sockets below it must stay under 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="dv"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
