from pathlib import Path

import pytest

from devlet.cluster.remote.in_cluster import in_cluster
from devlet.errors import InvalidInput

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_bytes(b"pem")
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("blue\n")
    return tmp_path


def test_a_pod_finds_its_server(folder: Path) -> None:
    found = in_cluster(ENVIRONMENT, folder)
    assert (found.server, found.ca, found.namespace) == ("https://10.0.0.1:443", b"pem", "blue")
    assert found.credentials.token_file == folder / "token"
    assert found.verify


def test_an_ipv6_address_is_bracketed(folder: Path) -> None:
    assert in_cluster({**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "fd00::1"}, folder).server == "https://[fd00::1]:443"


def test_the_namespace_may_be_missing(folder: Path) -> None:
    (folder / "namespace").unlink()
    assert in_cluster(ENVIRONMENT, folder).namespace == "default"


@pytest.mark.parametrize("missing", sorted(ENVIRONMENT))
def test_both_variables_are_needed(folder: Path, missing: str) -> None:
    with pytest.raises(InvalidInput, match="not in a pod"):
        in_cluster({k: v for k, v in ENVIRONMENT.items() if k != missing}, folder)


def test_a_missing_token_of_a_pod_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"ca\.crt.*not mounted"):
        in_cluster(ENVIRONMENT, tmp_path)
