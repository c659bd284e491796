"""The module that pytest loads everywhere. What its fixtures do is in tests/flows/test_fixture.py."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

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


OTHER_PLUGIN = """
import asyncio, inspect, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    if inspect.isasyncgenfunction(fixturedef.func):
        names = {name: request.getfixturevalue(name) for name in fixturedef.argnames}
        fixturedef.cached_result = (asyncio.run(anext(fixturedef.func(**names))), fixturedef.cache_key(request), None)
        return fixturedef.cached_result[0]
"""


@pytest.mark.long
def test_with_another_plugin_than_anyios_the_async_fixture_says_what_to_do(root: Path) -> None:
    (root / "conftest.py").write_text(OTHER_PLUGIN)
    (root / "test_it.py").write_text("def test_it(devlet_node_async): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 1
    assert "devlet_node_async is for tests that are marked with pytest.mark.anyio" in done.stdout
