"""Find pip: use the first of seven sources that works on this machine.

A Python without ensurepip is not broken: Debian and its derivatives package it separately. No source changes the system
or needs root. Only package indexes that are configured for pip are used; no address is assumed.
"""

import configparser
import hashlib
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

# The folder where Debian's python3-pip-whl, and so its ensurepip, keeps pip.
DISTRIBUTION_WHEELS = Path("/usr/share/python-wheels")
# A pip wheel has 2 MB, an index page 100 KB.
MAX_DOWNLOAD = 50_000_000
TIMEOUT = 60.0

NO_PIP = """\
this Python has no pip and none was found. Any one of these helps, then run make again:
  install your distribution's python3-venv (Debian, Ubuntu: apt-get install python3-venv) or python3-pip,
  put uv on the PATH, or name a package index in PIP_INDEX_URL or pip.conf"""


def find_pip(root: Path, python: Path) -> list[str] | str:
    """Return the command that installs into the environment of `python`, up to and including `install`, or why there is
    none."""
    problems = []
    for source in SOURCES:
        try:
            if command := source(root, python):
                return command
        except OSError as e:  # includes network errors
            problems.append(f"  {source.__name__.removeprefix('_').replace('_', ' ')}: {e}")
    return "\n".join([NO_PIP, *(["what was tried and failed:"] if problems else []), *problems])


def _the_environment(root: Path, python: Path) -> list[str] | None:
    pip = [str(python), "-m", "pip"]
    return [*pip, "install"] if _works([*pip, "--version"]) else None


def _ensurepip(root: Path, python: Path) -> list[str] | None:
    return _the_environment(root, python) if _works([str(python), "-m", "ensurepip", "--default-pip"]) else None


def _pip_of_the_system(root: Path, python: Path) -> list[str] | None:
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    return [*pip, "install"] if _works([*pip, "--version"]) else None


def _uv(root: Path, python: Path) -> list[str] | None:
    uv = shutil.which("uv")
    return [uv, "pip", "install", "--python", str(python)] if uv and _works([uv, "--version"]) else None


def _wheel_of_the_distribution(root: Path, python: Path) -> list[str] | None:
    return _from_wheels(python, DISTRIBUTION_WHEELS)


def _configured_index(root: Path, python: Path) -> list[str] | None:
    """Download the pip that the lock file names, and check its hash."""
    index = _configured("index-url")
    if not index:
        return None
    version, hashes = _locked_pip(root)
    file = f"pip-{version}-py3-none-any.whl"
    page = f"{index.rstrip('/')}/pip/"
    links = _Links.of(_fetch(page).decode(errors="replace"))
    link = next((link for link in links if Path(unquote(urlsplit(link).path)).name == file), None)
    if link is None:
        raise FileNotFoundError(f"{page} does not list {file}")
    blob = _fetch(urldefrag(urljoin(page, link)).url)
    if hashlib.sha256(blob).hexdigest() not in hashes:
        raise OSError(f"{file} from {page} is not the file whose hash requirements-dev.lock names")
    return _from_wheels(python, _keep(root, file, blob))


def _package_of_the_distribution(root: Path, python: Path) -> list[str] | None:
    """Download and unpack Debian's package in a private folder: for that, apt-get does not need root."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for partial in ("lists/partial", "cache/archives/partial"):
            (folder / partial).mkdir(parents=True)
        ours = ["-q", "-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
        _call(["apt-get", *ours, "update"], folder)
        _call(["apt-get", *ours, "download", "python3-pip-whl"], folder)
        for package in folder.glob("*.deb"):
            _call(["dpkg-deb", "-x", str(package), str(folder / "unpacked")], folder)
        for wheel in folder.glob("unpacked/usr/share/python-wheels/pip-*.whl"):
            return _from_wheels(python, _keep(root, wheel.name, wheel.read_bytes()))
    return None


SOURCES: Sequence[Callable[[Path, Path], list[str] | None]] = (
    _the_environment,
    _ensurepip,
    _pip_of_the_system,
    _uv,
    _wheel_of_the_distribution,
    _configured_index,
    _package_of_the_distribution,
)


def _from_wheels(python: Path, folder: Path) -> list[str] | None:
    """Run pip from its own wheel, without installing it."""
    for wheel in sorted(folder.glob("pip-*.whl"), reverse=True):
        pip = [str(python), str(wheel / "pip")]
        if _works([*pip, "--version"]):
            return [*pip, "install"]
    return None


def _keep(root: Path, name: str, blob: bytes) -> Path:
    folder = root / ".cache" / "pip"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(blob)
    return folder


def _locked_pip(root: Path) -> tuple[str, set[str]]:
    entry = re.search(r"^pip==(\S+)((?:.*\\\n)*.*)", (root / "requirements-dev.lock").read_text(), re.MULTILINE)
    if entry is None:
        raise FileNotFoundError("requirements-dev.lock does not name pip")
    return entry[1], set(re.findall(r"sha256:([0-9a-f]{64})", entry[2]))


def _configured(key: str) -> str | None:
    """Return a setting of pip: from the environment, or else from the first of its configuration files that has it."""
    if value := os.environ.get(f"PIP_{key.upper().replace('-', '_')}"):
        return value
    home = Path.home()
    files = [
        Path(os.environ.get("PIP_CONFIG_FILE") or os.devnull),
        Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf",
        home / ".pip" / "pip.conf",
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
    ]
    for file in files:
        settings = configparser.RawConfigParser()
        try:
            settings.read(file)
        except configparser.Error as e:
            raise OSError(f"{file}: {e}") from e
        for section in ("install", "global"):
            if value := settings.get(section, key, fallback=None):
                return value
    return None


def _fetch(url: str) -> bytes:
    if not url.startswith(("https://", "http://", "file://")):
        raise OSError(f"{url}: not an address that can be fetched")
    context = ssl.create_default_context(cafile=_configured("cert"))
    with urllib.request.urlopen(url, timeout=TIMEOUT, context=context) as answer:
        blob: bytes = answer.read(MAX_DOWNLOAD + 1)
    if len(blob) > MAX_DOWNLOAD:
        raise OSError(f"{url} is larger than {MAX_DOWNLOAD} bytes")
    return blob


class _Links(HTMLParser):
    """Collects the links of a page: an index lists a project's files that way."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    @classmethod
    def of(cls, page: str) -> list[str]:
        links = cls()
        links.feed(page)
        return links.found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def _works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _call(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command[:1] + command[-2:])}: {done.stderr.strip()}")
