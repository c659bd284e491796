"""Create `.venv` and fill it from a hashed lock file: `python3 -m tools.bootstrap run` or `dev`.

`make` runs this before every command. It uses only the standard library, because it runs before anything is installed.
It also works with a Python without ensurepip, such as Debian's: `pip_sources` then decides where pip comes from.
"""

import argparse
import fcntl
import hashlib
import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.pip_sources import find_pip

LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}
# What a complete environment of the key also contains.
IMPLIES = {"run": ["run"], "dev": ["run", "dev"]}
OLDEST = (3, 11)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make .venv and install devlet and a lock file into it.")
    parser.add_argument("what", choices=sorted(LOCKS), help="run: to run devlet; dev: to work on it")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the project's folder")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    with _alone(root):
        return ensure(root, arguments.what)


def ensure(root: Path, what: str) -> int:
    """Bring `.venv` to the state that the lock file describes. Do nothing if it is up to date."""
    stamp, wanted = root / ".venv" / f".{what}", _digest(root, what)
    python = root / ".venv" / "bin" / "python"
    usable = _usable(python)
    if usable and stamp.is_file() and stamp.read_text() == wanted:
        stamp.touch()
        return 0
    if not usable:
        _say(f"making .venv with Python {'.'.join(map(str, sys.version_info[:3]))}")
        venv.create(root / ".venv", clear=True, symlinks=True, with_pip=False)
    pip = find_pip(root, python)
    if isinstance(pip, str):
        _say(pip)
        return 1
    if not (_install_lock(root, pip, root / LOCKS[what]) and _install_project(root, pip)):
        return 1
    for part in IMPLIES[what]:
        (root / ".venv" / f".{part}").write_text(_digest(root, part))
    return 0


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold a lock, so that two commands started at once install once: the second one waits here."""
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _digest(root: Path, what: str) -> str:
    """Return a digest that changes whenever the environment has to be checked again."""
    parts = [(root / name).read_bytes() for name in (LOCKS[what], "pyproject.toml")]
    return hashlib.sha256(b"\0".join([str(root).encode(), *parts])).hexdigest() + "\n"


def _usable(python: Path) -> bool:
    """Return whether the environment's Python starts and is new enough. The Python that it was created from may be
    gone."""
    check = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    try:
        return subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _install_lock(root: Path, pip: list[str], lock: Path) -> bool:
    packages = re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(), re.MULTILINE)
    _say(f"installing {len(packages)} packages from {lock.name}")
    began = time.monotonic()
    ok = _run(root, [*pip, "--require-hashes", "-r", str(lock)], len(packages))
    if ok:
        _say(f"installed in {time.monotonic() - began:.0f} s")
    return ok


def _install_project(root: Path, pip: list[str]) -> bool:
    """Install the project as editable, built with the locked hatchling, so that nothing without a hash is fetched."""
    return _run(root, [*pip, "--no-deps", "--no-build-isolation", "-e", "."], 0)


def _run(root: Path, command: list[str], packages: int) -> bool:
    """Run an installer quietly, with a counter on a terminal. If it fails, show its complete output."""
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0"}
    counting = packages > 0 and sys.stderr.isatty()
    said: list[str] = []
    seen = 0
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if counting and line.startswith("Collecting "):
                seen += 1
                print(f"\r  {min(seen, packages)}/{packages}", end="", file=sys.stderr, flush=True)
    if counting:
        print("\r\033[K", end="", file=sys.stderr)
    if process.returncode:
        sys.stderr.writelines(said)
        _say(f"{' '.join(command[:4])} … exited with {process.returncode}: see the output above")
    return process.returncode == 0


def _say(text: str) -> None:
    print(f"devlet: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
