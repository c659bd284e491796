"""devlet's claim manager beside the kubelet's: claims prepared and unprepared per second. `python bench/prepare.py
[--quick]`.

Both start from the same checkpoint, with the same number of claims, and call the same DRA driver, a Go program; each
manager has a process of its own. Before a claim is prepared, the checkpoint records the intention. The claim counts as
prepared when the driver has responded and the checkpoint that says so is on disk. devlet reads the claims from a store
on disk, the kubelet from a stand-in for the API server in its memory. The kernel counts the writes of the
checkpoint.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from inotify_simple import INotify, flags

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench._report import OURS, PEERS, ROOT, Disk, Machine, Row, machine, replace_rate, show, write

from devlet.state.claim_checkpoint import decode
from tests.support.peers.drivers import kubelet_claims_driver

KUBELET = "kubelet"
FILE_WRITES = "file writes"
PROGRAM = PEERS / "kubelet-claims"
DRIVER = "bench.example.com"
CHECKPOINT = "dra_manager_state"
CHECKSUM_DIGITS = 10
BEGAN, ENDED = "began.mark", "ended.mark"
EXISTING = (0, 1000)
AT_ONCE = (1, 64)


@dataclass(frozen=True)
class Measure:
    existing: int
    at_once: int
    pods: int
    claims: int = 1  # per pod

    @property
    def how(self) -> str:
        how = "one after the other" if self.at_once == 1 else f"{self.at_once} at once"
        return f"{how}, {self.existing:,} in place" + ("" if self.claims else ", no claims")


def measures(pods: int, existing: Sequence[int] = EXISTING) -> list[Measure]:
    """Return the measures. The last one counts writes."""
    with_claims = [Measure(number, at_once, pods) for at_once in AT_ONCE for number in existing]
    return [*with_claims, Measure(max(existing), 1, pods, claims=0)]


@dataclass
class Bench:
    """Rows of one measure each, filled in turns: both sides once, then both again."""

    directory: Path
    sides: list[str]
    disk: Disk = field(default_factory=Disk)
    prepared: dict[Measure, Row] = field(default_factory=dict)
    unprepared: dict[Measure, Row] = field(default_factory=dict)
    writes: dict[Measure, Row] = field(default_factory=dict)
    written: dict[Measure, Row] = field(default_factory=dict)
    checkpoint_bytes: dict[int, int] = field(default_factory=dict)  # by claims in place

    async def take(self, measures: Sequence[Measure], repetitions: int) -> None:
        async with self._driver() as root:
            for _ in range(repetitions):
                self.disk.look(self.directory)
                for measure in measures:
                    await self._both(measure, root)

    async def _both(self, measure: Measure, root: Path) -> None:
        for side in self.sides:
            await self._take(measure, side, root)
        if measure.claims:
            size = self.checkpoint_bytes[measure.existing]
            self._row(self.prepared, measure).add(FILE_WRITES, replace_rate(self.directory / "floor", 50, size))

    @asynccontextmanager
    async def _driver(self) -> AsyncIterator[Path]:
        """Yield a node's root with a running driver."""
        root = Path(tempfile.mkdtemp(prefix="prep", dir=self.directory))
        try:
            async with kubelet_claims_driver(PEERS, root, driver_name=DRIVER):
                yield root
        finally:
            shutil.rmtree(root)

    async def _take(self, measure: Measure, side: str, root: Path) -> None:
        print(f"… {side}: {measure.how}", file=sys.stderr, flush=True)
        both = [f"--directory={root}", f"--driver={DRIVER}"]
        await anyio.run_process([PROGRAM, "prepare-state", *both, f"--existing={measure.existing}"])
        socket = f"--driver-socket={root / 'plugins' / DRIVER / 'dra.sock'}"
        load = [f"--pods={measure.pods}", f"--claims={measure.claims}"]
        command = _ours(measure) if side == OURS else _theirs(measure)
        with (root / f"{side}.log").open("ab") as log, watched(root) as seen:
            answer = await anyio.run_process([*command, *both, socket, *load], cwd=ROOT, stderr=log)
        figures: dict[str, float] = json.loads(answer.stdout)
        _check(measure, figures, root / CHECKPOINT)
        self._note(measure, side, figures, seen.writes())

    def _note(self, measure: Measure, side: str, figures: dict[str, float], writes: int) -> None:
        self._row(self.writes, measure).add(side, writes / measure.pods)
        if measure.claims:
            self.checkpoint_bytes[measure.existing] = int(figures["checkpoint_bytes"])
            self._row(self.prepared, measure).add(side, figures["prepare_rate"])
            self._row(self.unprepared, measure).add(side, figures["unprepare_rate"])
            self._row(self.written, measure).add(side, figures["written_bytes"] / measure.pods / 1024)

    def _row(self, rows: dict[Measure, Row], measure: Measure) -> Row:
        kinds = [
            (self.prepared, "claims prepared", "/s"),
            (self.unprepared, "claims unprepared", "/s"),
            (self.writes, "writes per pod", ""),
            (self.written, "written per pod", "KiB"),
        ]
        what, unit = next((what, unit) for kind, what, unit in kinds if kind is rows)
        return rows.setdefault(measure, Row(f"{what}, {measure.how}", unit, more_is_better=unit == "/s"))

    def rates(self, wanted: Sequence[Measure]) -> list[Row]:
        return [rows[measure] for rows in (self.prepared, self.unprepared) for measure in wanted if measure in rows]


def _ours(measure: Measure) -> list[str]:
    return [sys.executable, "-m", "bench._claim_manager", f"--at-once={measure.at_once}"]


def _theirs(measure: Measure) -> list[str]:
    return [str(PROGRAM), "bench", f"--concurrency={measure.at_once}"]


@dataclass
class Watched:
    """The files that appeared in the directory, in order."""

    names: list[str] = field(default_factory=list)

    def writes(self) -> int:
        """Return how often the checkpoint was replaced between the two marks that each side sets."""
        began, ended = self.names.index(BEGAN), self.names.index(ENDED)
        return self.names[began:ended].count(CHECKPOINT)


@contextmanager
def watched(directory: Path) -> Iterator[Watched]:
    """Watch the directory. Names are read at the end; until then the kernel keeps some 16,000 of them. Temporary files
    are included, because the kernel drops an event that is equal to the one before."""
    found = Watched()
    for mark in (BEGAN, ENDED):
        (directory / mark).unlink(missing_ok=True)
    with INotify() as watch:
        watch.add_watch(directory, flags.MOVED_TO | flags.CREATE)
        yield found
        events = watch.read(timeout=0)
    if any(event.mask & flags.Q_OVERFLOW for event in events):
        raise SystemExit("more writes than the kernel counts: measure fewer pods")
    found.names = [event.name for event in events]


def _check(measure: Measure, figures: dict[str, float], checkpoint: Path) -> None:
    """Check that all claims were prepared and unprepared, and that the existing ones are unchanged."""
    left = decode(checkpoint.read_bytes()).claims or ()
    found = [figures["existing"], figures["prepared"], figures["unprepared"], len(left)]
    expected = [measure.existing, measure.pods, measure.pods, measure.existing]
    grown = figures["checkpoint_bytes"] - checkpoint.stat().st_size  # by the claims, while they were prepared
    if found != expected or grown < 100 * measure.pods * measure.claims - CHECKSUM_DIGITS:
        raise SystemExit(f"{measure.how}: {found} in place, prepared, unprepared, left; expected {expected}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repetition with few pods")
    parser.add_argument("--pods", type=int, help="to prepare and unprepare per measurement")
    parser.add_argument("--existing", type=int, nargs="+", default=EXISTING, help="claims in place")
    parser.add_argument("--repetitions", type=int, help="of which the median is shown")
    parser.add_argument("--directory", type=Path, default=ROOT / ".cache" / "bench", help="on the disk to measure")
    parser.add_argument("--only", default="", metavar="TEXT", help="measures whose description has this in it")
    parser.add_argument("--alone", action="store_true", help="without the kubelet")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single figure there")
    options = parser.parse_args()
    options.pods = options.pods or (64 if options.quick else 256)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    return options


async def run(options: argparse.Namespace) -> None:
    if not PROGRAM.is_file():  # it is also the driver
        raise SystemExit(f"{PROGRAM.name} is not built: run `make peers`")
    options.directory.mkdir(parents=True, exist_ok=True)
    about = machine(options.directory)
    bench = Bench(options.directory.absolute(), [OURS] if options.alone else [OURS, KUBELET])
    wanted = [measure for measure in measures(options.pods, options.existing) if options.only in measure.how]
    await bench.take(wanted, options.repetitions)
    _print(about, bench, wanted)
    if options.json:
        settings = {"pods": options.pods, "repetitions": options.repetitions}
        rows = [*bench.rates(wanted), *bench.writes.values()]
        write(options.json, about, bench.disk, rows, settings | {"checkpoint_bytes": bench.checkpoint_bytes})


def _print(about: Machine, bench: Bench, wanted: Sequence[Measure]) -> None:
    appends, replaced = statistics.median(bench.disk.appends), statistics.median(bench.disk.replaced)
    print(f"{about.cores} cores, {about.system}, Python {about.python}, {about.file_system}, load {about.load}")
    print(f"disk: {appends:,.0f} fdatasyncs/s of 4 KiB appends, {replaced:,.0f} fsynced renames/s of 4 KiB")
    sizes = (f"{size:,} bytes with {existing:,} in place" for existing, size in sorted(bench.checkpoint_bytes.items()))
    print(f"checkpoint: {', '.join(sizes)}\n")
    others = [side for side in bench.sides if side != OURS]
    show("Pods with one claim each", bench.rates(wanted), *others, FILE_WRITES)
    show("Writes of the checkpoint, from prepare to unprepare", list(bench.writes.values()), *others)
    show("Bytes, sockets included", list(bench.written.values()), *others)


if __name__ == "__main__":
    anyio.run(run, _options())
