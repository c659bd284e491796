"""What becomes of a test whose program is not built. Needs none of the programs."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.conftest import Peers


@pytest.fixture
def unbuilt(peers: "Peers", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Peers":
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("DEVLET_PEERS", raising=False)
    return replace(peers, binaries=tmp_path)


def test_it_is_skipped_with_what_to_do(unbuilt: "Peers") -> None:
    with pytest.raises(pytest.skip.Exception, match="etcd, kubectl not built: run `make peers`"):
        unbuilt.need("etcd", "kubectl")


@pytest.mark.parametrize(("variable", "value"), [("CI", "true"), ("DEVLET_PEERS", "required")])
def test_it_fails_where_the_programs_are_expected(
    unbuilt: "Peers", variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(pytest.fail.Exception, match="etcd not built: run `make peers`"):
        unbuilt.need("etcd")


def test_a_test_whose_programs_are_there_goes_on(unbuilt: "Peers") -> None:
    (unbuilt.binaries / "etcd").touch()
    unbuilt.need("etcd")
    assert (unbuilt.binaries / "etcd").exists()
