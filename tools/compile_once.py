"""A pytest plugin that lets the workers of pytest-xdist share the compilation of a fresh clone.

Without it, every worker compiles devlet and rewrites the assertions of all tests, because all workers import the same
files at the same time. With it, each worker first compiles a part of the files. Python and pytest then load the
compiled files as usual, and compile any that are missing, so an error here costs time and nothing else.
"""

import compileall
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

ROOT = Path(__file__).resolve().parent.parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    part = slice(int(worker["workerid"].removeprefix("gw")), None, worker["workercount"])
    for path in sorted((ROOT / "tests").rglob("*.py"))[part]:
        with suppress(Exception):  # pytest reports any error when it imports the file
            compile_test(path, session.config)
    modules = [path for folder in ("src", "tests/support") for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in modules[part]:
        compileall.compile_file(path, quiet=2)


def compile_test(path: Path, config: pytest.Config) -> Path:
    """Write the compiled file that pytest would write when it imports the test. Return its path."""
    folder = rewrite.get_cache_dir(path)
    compiled = folder / f"{path.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(path, compiled) is None and rewrite.try_makedirs(folder):
        source, code = rewrite._rewrite_test(path, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, compiled)
    return compiled
