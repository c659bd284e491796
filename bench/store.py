"""The embedded store beside etcd: durable creates, lists, watches. `python bench/store.py [--quick] [--json FILE]`.
With `--writes`, only the cost of each write in the store that scheduling a pod needs.

The two do not do the same work. etcd stores bytes and is called over a socket. The store is called within its process
and does an API server's work on every object (types, defaults, validation, managed fields) before it stores it. So
etcd's rate shows what a disk log can do, not what an API server on top of it can do.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench import _etcd, _kube_apiserver
from bench._report import OURS, ROOT, Disk, Machine, Row, machine, resident_mebibytes, show, write

WRITERS = (1, 16, 64)
ETCD = "etcd"
API_SERVER = "kube-apiserver"


@dataclass(frozen=True)
class Measure:
    op: str  # create, list or watch
    object: str  # slice or claim
    count: int
    writers: int = 1
    watchers: int = 0

    def is_for(self, side: str) -> bool:
        """Return whether the side takes part. Watches go to etcd alone: 100 of them would measure the client of the API
        server."""
        return side != API_SERVER or self.op != "watch"

    @property
    def what(self) -> str:
        match self.op:
            case "create":
                return f"durable creates of {self.object}s, {_plural(self.writers, 'writer')}"
            case "list":
                return f"list of {self.count:,} {self.object}s"
        return f"watch events of {self.object}s to {_plural(self.watchers, 'watcher')}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def measures(count: int, watchers: int) -> list[Measure]:
    watched = max(count // 4, 1)
    return [
        *(Measure("create", "slice", count, writers) for writers in WRITERS),
        Measure("create", "claim", count, 16),
        Measure("list", "slice", count * 5, 64),
        Measure("watch", "slice", watched, watchers=watchers),
        Measure("watch", "claim", watched, watchers=watchers),
    ]


class Bench:
    """Takes a measure several times, the sides in turns, each on an empty store in the same directory."""

    def __init__(self, directory: Path, gc: str, sides: Sequence[str]) -> None:
        self.disk = Disk()
        self.stored_bytes: dict[str, int] = {}
        self._directory = directory
        self._gc = gc
        take = {OURS: self._take_ours, ETCD: self._take_etcd, API_SERVER: self._take_api_server}
        self._sides = {side: take[side] for side in sides}  # ours first: it determines how many bytes are stored

    async def rows(self, measure: Measure, repetitions: int) -> list[Row]:
        is_list = measure.op == "list"
        row = Row(measure.what, "s" if is_list else "/s", more_is_better=not is_list)
        decoded = Row(f"{measure.what}, decoded", "s", more_is_better=False)
        memory = Row(f"memory with {measure.count:,} {measure.object}s, after the lists", "MiB", more_is_better=False)
        for _ in range(repetitions):
            self.disk.look(self._directory)
            for side, take in self._sides.items():
                if not measure.is_for(side):
                    continue
                with self._fresh() as directory:
                    figures = await take(measure, directory)
                row.add(side, figures["seconds" if is_list else "per_second"])
                memory.add(side, figures["rss_mib"])
                if side == OURS and is_list:
                    decoded.add(side, figures["decoded_seconds"])
        return [row, decoded, memory] if is_list else [row]

    @contextmanager
    def _fresh(self) -> Iterator[Path]:
        directory = Path(tempfile.mkdtemp(prefix="store", dir=self._directory))
        try:
            yield directory
        finally:
            shutil.rmtree(directory)

    async def _take_ours(self, measure: Measure, directory: Path) -> dict[str, float]:
        flags = {
            "directory": directory,
            "op": measure.op,
            "object": measure.object,
            "count": measure.count,
            "writers": measure.writers,
            "watchers": measure.watchers,
            "gc": self._gc,
        }
        words = [f"--{name}={value}" for name, value in flags.items()]
        answer = await anyio.run_process([sys.executable, "-m", "bench._embedded", *words], cwd=ROOT, stderr=None)
        figures: dict[str, float] = json.loads(answer.stdout)
        self.stored_bytes[measure.object] = int(figures["stored_bytes"])
        return figures

    async def write_rows(self, repetitions: int, rounds: int) -> list[Row]:
        """Measure the processor time of the writes that schedule a pod, each repetition on an empty store."""
        rows: dict[str, Row] = {}
        for _ in range(repetitions):
            self.disk.look(self._directory)
            with self._fresh() as directory:
                words = [f"--directory={directory}", f"--rounds={rounds}"]
                answer = await anyio.run_process([sys.executable, "-m", "bench._writes", *words], cwd=ROOT, stderr=None)
            for name, figures in json.loads(answer.stdout).items():
                for which, figure in figures.items():
                    what = f"{name}, {which} of {rounds} rounds"
                    rows.setdefault(what, Row(what, "ms", more_is_better=False)).add(OURS, figure)
        return list(rows.values())

    async def _take_etcd(self, measure: Measure, directory: Path) -> dict[str, float]:
        flags = {
            "op": measure.op,
            "count": measure.count,
            "writers": measure.writers,
            "watchers": max(measure.watchers, 1),
            "value_size": self.stored_bytes[measure.object],
        }
        async with _etcd.etcd(directory) as (endpoint, pid):
            figures = await _etcd.load(endpoint, **flags)
            if measure.op == "list":  # repeatedly, as on our side; the objects of the first repetition still exist
                took = [figures["seconds"], *[(await _etcd.load(endpoint, **flags))["seconds"] for _ in range(4)]]
                figures["seconds"] = statistics.median(took)
            return figures | {"rss_mib": resident_mebibytes(pid)}

    async def _take_api_server(self, measure: Measure, directory: Path) -> dict[str, float]:
        return await _kube_apiserver.measure(
            measure.op, measure.object, measure.count, max(measure.writers, 1), directory
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repetition with few objects and watchers")
    parser.add_argument("--count", type=int, help="objects per measurement; lists have five times as many")
    parser.add_argument("--repetitions", type=int, help="of which the median is shown")
    parser.add_argument("--gc", choices=("default", "tuned"), default="default", help="Python's collector on our side")
    parser.add_argument("--directory", type=Path, default=ROOT / ".cache" / "bench", help="on the disk to measure")
    parser.add_argument("--only", default="", metavar="TEXT", help="measures whose description has this in it")
    parser.add_argument("--writes", action="store_true", help="only the writes that schedule a pod, in processor time")
    parser.add_argument("--alone", action="store_true", help="without etcd")
    parser.add_argument("--api-server", action="store_true", help="with kube-apiserver too, which takes minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single figure there")
    options = parser.parse_args()
    options.count = options.count or (100 if options.quick else 1000)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    options.watchers = 10 if options.quick else 100
    return options


def _sides(options: argparse.Namespace) -> list[str]:
    sides = [OURS]
    if _etcd.is_built() and not options.alone:
        sides.append(ETCD)
    if options.api_server and not _kube_apiserver.is_built():
        raise SystemExit(f"{API_SERVER} is not built: run `make peers`")
    return [*sides, API_SERVER] if options.api_server else sides


async def run(options: argparse.Namespace) -> None:
    options.directory.mkdir(parents=True, exist_ok=True)
    about = machine(options.directory)
    sides = [OURS] if options.writes else _sides(options)
    bench = Bench(options.directory, options.gc, sides)
    rows: list[Row] = []
    if options.writes:
        rows += await bench.write_rows(options.repetitions, rounds=3 if options.quick else 20)
    for measure in [] if options.writes else measures(options.count, options.watchers):
        if options.only in measure.what:
            print(f"… {measure.what}", file=sys.stderr, flush=True)
            rows += await bench.rows(measure, options.repetitions)
    _print(about, bench, rows, sides[1:])
    if options.json:
        settings = {"count": options.count, "repetitions": options.repetitions, "gc": options.gc}
        write(options.json, about, bench.disk, rows, settings | {"stored_bytes": bench.stored_bytes})


def _print(about: Machine, bench: Bench, rows: list[Row], others: list[str]) -> None:
    appends, replaced = statistics.median(bench.disk.appends), statistics.median(bench.disk.replaced)
    print(f"{about.cores} cores, {about.system}, Python {about.python}, {about.file_system}, load {about.load}")
    print(f"disk: {appends:,.0f} fdatasyncs/s of 4 KiB appends, {replaced:,.0f} fsynced renames/s")
    if bench.stored_bytes:
        print(f"stored bytes: {', '.join(f'{size:,} per {name}' for name, size in bench.stored_bytes.items())}")
    print()
    show("The embedded store", rows, *others)
    writes = [Row(row.what, row.unit, runs={**row.runs, "fdatasync": bench.disk.appends}) for row in rows]
    if creates := [row for row in writes if "creates" in row.what]:
        show("Creates and the disk", creates, "fdatasync")
    if ETCD not in others and bench.stored_bytes:
        print("etcd was not measured; `make peers` builds it.")


if __name__ == "__main__":
    anyio.run(run, _options())
