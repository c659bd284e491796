"""The contract lives in the package: have its asserts explained like those of the tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.support.cluster_contract")


@pytest.fixture(scope="module")
def module_root() -> Iterator[Path]:
    """One cluster serves a whole module: the contract bears company, as it does before a kube-apiserver."""
    path = Path(tempfile.mkdtemp(prefix="dv"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
