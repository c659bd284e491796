"""pip on a Python without ensurepip: found in a configured index, checked, or explained."""

import hashlib
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import pytest
from tools import pip_sources
from tools.pip_sources import find_pip

WHEEL = "pip-99.0-py3-none-any.whl"


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A package index on this machine that lists one wheel, which answers like pip."""
    (tmp_path / "index/pip").mkdir(parents=True)
    (tmp_path / "index/files").mkdir()
    with ZipFile(tmp_path / "index/files" / WHEEL, "w") as wheel:
        wheel.writestr("pip/__main__.py", "import sys; print('pip', *sys.argv[1:])")
    (tmp_path / "index/pip/index.html").write_text(f'<a href="../files/{WHEEL}#sha256=00">{WHEEL}</a>')
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(tmp_path / "index"))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project on a machine where only a configured index can help."""
    (tmp_path / "project").mkdir()
    monkeypatch.setattr(pip_sources, "SOURCES", [pip_sources._configured_index])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("PIP_CONFIG_FILE", raising=False)
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_CERT", raising=False)
    return tmp_path / "project"


def lock(root: Path, digest: str) -> None:
    text = f"packaging==1 \\\n    --hash=sha256:{'1' * 64}\npip==99.0 \\\n    --hash=sha256:{digest}\n"
    (root / "requirements-dev.lock").write_text(text)


def digest_of(root: Path) -> str:
    return hashlib.sha256((root.parent / "index/files" / WHEEL).read_bytes()).hexdigest()


def test_the_locked_pip_runs_out_of_the_wheel_of_the_configured_index(
    root: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    lock(root, digest_of(root))
    kept = root / ".cache/pip" / WHEEL
    assert find_pip(root, Path(sys.executable)) == [sys.executable, str(kept / "pip"), "install"]
    assert kept.read_bytes() == (root.parent / "index/files" / WHEEL).read_bytes()


def test_a_configuration_file_of_pip_names_the_index_too(root: Path, index: str) -> None:
    (root.parent / ".config/pip").mkdir(parents=True)
    (root.parent / ".config/pip/pip.conf").write_text(f"[global]\nindex-url = {index}/\n")
    lock(root, digest_of(root))
    assert isinstance(find_pip(root, Path(sys.executable)), list)


def test_a_wheel_with_another_hash_than_the_lock_is_refused(
    root: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    lock(root, "2" * 64)
    answer = find_pip(root, Path(sys.executable))
    assert isinstance(answer, str) and "is not the file whose hash" in answer
    assert not (root / ".cache").exists()


@pytest.mark.parametrize(("address", "why"), [("ftp://127.0.0.1", "not an address"), ("http://127.0.0.1:1", "refused")])
def test_an_unreachable_index_is_named(root: Path, address: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", address)
    lock(root, "2" * 64)
    answer = find_pip(root, Path(sys.executable))
    assert isinstance(answer, str) and why in answer


def test_without_any_source_the_message_says_what_to_do(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip_sources, "SOURCES", [])
    answer = find_pip(root, Path(sys.executable))
    assert isinstance(answer, str) and "python3-venv" in answer and "PIP_INDEX_URL" in answer
