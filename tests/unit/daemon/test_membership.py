import logging
from pathlib import Path

import pytest

from devlet.daemon.membership import FILE, embed, join
from devlet.daemon.root import DATABASE
from devlet.errors import InvalidInput

SERVER = "https://192.0.2.1:6443"


def test_a_new_root_may_be_either(root: Path) -> None:
    embed(root)
    join(root, SERVER)
    assert (root / FILE).read_text() == f"{SERVER}\n"
    assert (root / FILE).stat().st_mode & 0o077 == 0


def test_the_root_of_another_clusters_node_gets_no_embedded_one(root: Path) -> None:
    join(root, SERVER)
    with pytest.raises(
        InvalidInput, match=f"belongs to the cluster at {SERVER}, not to an embedded one; start it with --kub"
    ):
        embed(root)


def test_a_root_with_an_embedded_cluster_joins_no_other(root: Path) -> None:
    (root / DATABASE).touch()
    embed(root)
    with pytest.raises(InvalidInput, match="has an embedded cluster, so its node cannot join https"):
        join(root, SERVER)
    assert not (root / FILE).exists()


def test_joining_the_same_cluster_again_changes_nothing(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    join(root, SERVER)
    before = (root / FILE).stat().st_mtime_ns
    join(root, SERVER)
    assert (root / FILE).stat().st_mtime_ns == before
    assert caplog.records == []


def test_a_new_address_of_the_cluster_is_logged_and_recorded(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    join(root, SERVER)
    with caplog.at_level(logging.WARNING):
        join(root, "https://192.0.2.2:6443")
    assert [record.message for record in caplog.records] == ["cluster has another address"]
    assert (root / FILE).read_text() == "https://192.0.2.2:6443\n"
