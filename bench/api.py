"""devlet's API beside etcd and kube-apiserver: start, memory, creates, lists, watches. `python bench/api.py [--quick]`.

The same Go program calls both over HTTPS, with the same bytes. One repetition is one run of each server, in turns: it
starts empty, is watched and written to until it holds the slices, and is then listed.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench import _api_load, _api_servers
from bench._api_servers import Server
from bench._objects import JSON, PROTOBUF
from bench._report import OURS, ROOT, Disk, Machine, Row, machine, show, write

THEIRS = "etcd + kube-apiserver"
SERVERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Server]]] = {
    OURS: _api_servers.devlet,
    THEIRS: _api_servers.kube_apiserver,
}
FORMATS = {"JSON": JSON, "protobuf": PROTOBUF}
GO_ACCEPT = f"{PROTOBUF},{JSON}"  # what Go clients request for built-in kinds
LISTS = 5
IDLE = 3.0  # seconds between ready and reading the memory


@dataclass(frozen=True)
class Measure:
    op: str  # create, list or watch
    object: str
    count: int
    format: str = "JSON"
    writers: int = 1
    watchers: int = 0

    @property
    def what(self) -> str:
        match self.op:
            case "create":
                return f"creates of {self.object}s in {self.format}, {_plural(self.writers, 'writer')}"
            case "list":
                how = "" if self.format == "JSON" else ", as a Go client asks"
                return f"list of {self.count:,} {self.object}s{how}"
        return f"watch events of {self.object}s to {_plural(self.watchers, 'watcher')}"


START = "start to ready"
IDLE_MEMORY = "memory when idle"
PEAK_MEMORY = "maximum memory"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def measures(count: int, watchers: Sequence[int]) -> list[Measure]:
    """Return the measures in the order in which they run. Together they write five times `count` slices."""
    watched = max(count // 4, 1)
    return [
        *(Measure("watch", "config map", watched, watchers=number) for number in watchers),
        *(Measure("watch", "slice", watched, watchers=number) for number in watchers),
        *(Measure("create", "slice", count, format_, writers) for writers in (1, 16) for format_ in FORMATS),
        *(Measure("list", "slice", count * 5, format_) for format_ in FORMATS),
    ]


@dataclass
class Bench:
    """Rows by title, filled one server run after the other."""

    directory: Path
    wanted: list[Measure]
    disk: Disk = field(default_factory=Disk)
    rows: dict[str, Row] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)  # of watches that a server ended, by side
    list_bytes: dict[str, int] = field(default_factory=dict)

    async def live(self, side: str) -> None:
        """Measure one run of one server."""
        with self._fresh() as directory:
            async with SERVERS[side](directory) as server:
                await anyio.sleep(IDLE)
                self._add(START, "s", side, server.seconds_to_ready, more_is_better=False)
                self._add(IDLE_MEMORY, "MiB", side, server.resident_mebibytes(), more_is_better=False)
                await self._go_through(side, server)

    async def _go_through(self, side: str, server: Server) -> None:
        written = {"slice": 0, "config map": 0}
        for measure in self.wanted:
            print(f"… {side}: {measure.what}", file=sys.stderr, flush=True)
            if measure.op == "list":
                await self._fill(side, server, measure, written)
                await self._list(side, server, measure)
            else:
                await self._write(side, server, measure, written[measure.object])
                written[measure.object] += measure.count
        self._add(PEAK_MEMORY, "MiB", side, server.most_resident_mebibytes(), more_is_better=False)

    async def _write(self, side: str, server: Server, measure: Measure, first: int) -> None:
        content_type = FORMATS[measure.format]
        figures = await _api_load.load(
            server,
            measure.op,
            measure.object,
            bodies=self._bodies(measure.object, first, measure.count, content_type),
            content_type=content_type,
            accept=JSON if content_type == JSON else GO_ACCEPT,
            warmup=measure.count // 10,
            writers=measure.writers,
            watchers=max(measure.watchers, 1),
        )
        self.restarts[side] = self.restarts.get(side, 0) + int(figures.get("restarts", 0))
        self._add(measure.what, "/s", side, figures["per_second"])

    async def _fill(self, side: str, server: Server, measure: Measure, written: dict[str, int]) -> None:
        """Write until the collection is as large as the list requires."""
        first, count = written[measure.object], measure.count - written[measure.object]
        if count > 0:
            bodies = self._bodies(measure.object, first, count, JSON)
            await _api_load.load(server, "create", measure.object, bodies=bodies, writers=16)
            written[measure.object] += count
            what = f"memory with {measure.count:,} {measure.object}s"
            self._add(what, "MiB", side, server.resident_mebibytes(), more_is_better=False)

    async def _list(self, side: str, server: Server, measure: Measure) -> None:
        asked = {} if measure.format == "JSON" else {"accept": GO_ACCEPT, "gzip": "true"}
        figures = await _api_load.load(server, "list", measure.object, repeat=LISTS, **asked)
        self._add(measure.what, "s", side, figures["seconds"], more_is_better=False)
        self.list_bytes[side] = max(self.list_bytes.get(side, 0), int(figures["bytes"]))

    def _bodies(self, object_: str, first: int, count: int, content_type: str) -> Path:
        return _api_load.body_file(self.directory, object_, first, count, content_type)

    def _add(self, what: str, unit: str, side: str, figure: float, *, more_is_better: bool = True) -> None:
        self.rows.setdefault(what, Row(what, unit, more_is_better)).add(side, figure)

    @contextmanager
    def _fresh(self) -> Iterator[Path]:
        directory = Path(tempfile.mkdtemp(prefix="api", dir=self.directory))
        try:
            yield directory
        finally:
            shutil.rmtree(directory)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repetition with few objects and watchers")
    parser.add_argument("--count", type=int, help="objects per measurement; lists have five times as many")
    parser.add_argument("--repetitions", type=int, help="of which the median is shown")
    parser.add_argument("--directory", type=Path, default=ROOT / ".cache" / "bench", help="on the disk to measure")
    parser.add_argument("--only", default="", metavar="TEXT", help="measures whose description has this in it")
    parser.add_argument("--alone", action="store_true", help="without etcd and kube-apiserver")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single figure there")
    options = parser.parse_args()
    options.count = options.count or (100 if options.quick else 1000)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    options.watchers = (10,) if options.quick else (10, 100)
    return options


async def run(options: argparse.Namespace) -> None:
    if not _api_load.is_built():
        print("The API was not measured: bench-api is not built. `make peers` builds it.")
        return
    alone = options.alone or not _api_servers.is_built()
    sides = [OURS] if alone else [OURS, THEIRS]
    options.directory.mkdir(parents=True, exist_ok=True)
    about = machine(options.directory)
    wanted = [one for one in measures(options.count, options.watchers) if options.only in one.what]
    with tempfile.TemporaryDirectory(prefix="bodies", dir=options.directory) as directory:
        bench = Bench(Path(directory), wanted)
        for _ in range(options.repetitions):
            bench.disk.look(options.directory)
            for side in sides:
                await bench.live(side)
    _print(about, bench, sides[1:])
    if options.json:
        settings = {"count": options.count, "repetitions": options.repetitions}
        found = {"restarted_watches": bench.restarts, "list_bytes": bench.list_bytes}
        write(options.json, about, bench.disk, [*bench.rows.values()], settings | found)


def _print(about: Machine, bench: Bench, others: list[str]) -> None:
    appends = statistics.median(bench.disk.appends)
    print(f"{about.cores} cores, {about.system}, Python {about.python}, {about.file_system}, load {about.load}")
    print(f"disk: {appends:,.0f} fdatasyncs/s of 4 KiB appends")
    print(f"one list in JSON: {', '.join(f'{size:,} bytes from {side}' for side, size in bench.list_bytes.items())}")
    print(f"watches that were ended and resumed: {bench.restarts}\n")
    show("The Kubernetes API", [*bench.rows.values()], *others)
    if not others:
        print("etcd and kube-apiserver were not measured; `make peers` builds them.")


if __name__ == "__main__":
    anyio.run(run, _options())
