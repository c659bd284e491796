import io
import lzma
import os
import tarfile
from pathlib import Path

from tools.make_upgrade_root import pack, private


def entries(content: bytes) -> dict[str, tuple[int, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(content))) as archive:
        return {each.name: (each.mode, (archive.extractfile(each) or io.BytesIO()).read()) for each in archive}


def fill(root: Path) -> None:
    (root / "pki").mkdir()
    (root / "pki" / "ca.key").write_bytes(b"key")
    (root / "pki" / "ca.key").chmod(0o600)
    (root / "cluster.db").write_bytes(b"data")
    (root / "cluster.db").chmod(0o640)
    (root / "devlet.lock").write_text(f"{os.getpid()}\n")


def test_an_archive_has_the_files_with_their_modes_and_the_description(root: Path) -> None:
    fill(root)
    assert entries(pack(root, {"a": 1})) == {
        "kept.json": (0o644, b'{\n "a": 1\n}'),
        "root/cluster.db": (0o640, b"data"),
        "root/pki/ca.key": (0o600, b"key"),
    }


def test_the_same_content_gives_the_same_bytes(root: Path, tmp_path: Path) -> None:
    fill(root)
    fill(tmp_path)
    os.utime(tmp_path / "cluster.db", (0, 0))
    assert pack(root, {"b": 1, "a": 2}) == pack(tmp_path, {"a": 2, "b": 1})


def test_files_that_identify_the_machine_are_named(root: Path) -> None:
    fill(root)
    assert private(root, ("elsewhere",)) == []
    (root / "pki" / "server.pem").write_text("CN=my-host")
    assert private(root, ("elsewhere", "my-host")) == ["pki/server.pem contains 'my-host'"]
