import base64
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from devlet.auth import kubeconfigs

CONFIG = kubeconfigs.document("https://127.0.0.1:6443", b"PEM", "admin", kubeconfigs.token_user("t"))


def test_a_kubeconfig_contains_certificates_and_tokens() -> None:
    assert CONFIG == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "devlet",
                "cluster": {
                    "server": "https://127.0.0.1:6443",
                    "certificate-authority-data": base64.b64encode(b"PEM").decode(),
                },
            }
        ],
        "users": [{"name": "admin", "user": {"token": "t"}}],
        "contexts": [{"name": "devlet", "context": {"cluster": "devlet", "user": "admin"}}],
        "current-context": "devlet",
    }
    assert yaml.safe_load(kubeconfigs.text(CONFIG)) == CONFIG


def test_a_default_namespace_is_in_the_context() -> None:
    config = kubeconfigs.document("https://x", b"", "a", {}, "team")
    assert config["contexts"][0]["context"]["namespace"] == "team"


def test_only_the_owner_can_read_a_written_file(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    before = os.umask(0)
    try:
        assert kubeconfigs.write(file, CONFIG)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kubeconfigs.read(file) == CONFIG


def test_additions_of_users_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    mine: dict[str, Any] = {**CONFIG, "contexts": [{"name": "x", "context": {"namespace": "team"}}]}
    kubeconfigs.write(file, mine)
    before = file.read_bytes()
    assert not kubeconfigs.write(file, CONFIG)
    assert file.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"a: [", b"{}", b"clusters: 1", b"[" * 5000])
def test_a_file_that_is_not_a_kubeconfig_is_replaced(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "kubeconfig"
    file.write_bytes(content)
    file.chmod(0o600)
    assert kubeconfigs.write(file, CONFIG)
    assert kubeconfigs.read(file) == CONFIG


def test_a_file_with_another_server_or_token_or_with_open_permissions_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    kubeconfigs.write(file, CONFIG)
    other = kubeconfigs.document("https://127.0.0.1:7443", b"PEM", "admin", kubeconfigs.token_user("t"))
    assert kubeconfigs.write(file, other)
    assert kubeconfigs.write(file, CONFIG)
    file.chmod(0o644)
    assert kubeconfigs.write(file, CONFIG)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_missing_file_is_an_empty_document(tmp_path: Path) -> None:
    assert kubeconfigs.read(tmp_path / "none") == {}
