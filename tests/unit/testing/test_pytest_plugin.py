"""The module that pytest loads everywhere. What its fixtures do is in tests/flows/test_fixture.py."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

from devlet.testing import pytest_plugin

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
HEAVY = ("anyio", "grpc", "aiohttp", "yaml", "msgspec", "cryptography", "devlet.daemon", "devlet.testing.node")


def test_loading_it_loads_nothing_else_of_devlet_or_of_others() -> None:
    code = f"import sys; import devlet.testing.pytest_plugin; print([each for each in {HEAVY} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_pytest_finds_it_by_its_entry_point() -> None:
    named = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]["pytest11"]
    assert [import_module(module) for module in named.values()] == [pytest_plugin]
