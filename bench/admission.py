"""devlet's device manager beside the kubelet's: pods admitted per second. `python bench/admission.py [--quick]`.

Both start from the same checkpoint, with the same number of allocations, and call the same device plugin, a Go program;
each manager has a process of its own. A pod is admitted when the checkpoint that says so is on disk. The kubelet admits
one pod at a time; devlet calls the plugin for several at once, and one write serves all pods that wait.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench._report import OURS, PEERS, ROOT, Disk, Machine, Row, machine, replace_rate, show, write

from devlet.kit.processes import line, process
from devlet.runtime import kubelet_paths
from devlet.state import device_checkpoint
from devlet.state.device_checkpoint import decode

KUBELET = "kubelet"
FILE_WRITES = "file writes"
PROGRAM = PEERS / "kubelet-devices"
RESOURCE = "example.com/gpu"
EXISTING = (0, 1000, 5000)
AT_ONCE = (1, 64)


@dataclass(frozen=True)
class Measure:
    existing: int
    at_once: int
    pods: int

    @property
    def what(self) -> str:
        how = "one after the other" if self.at_once == 1 else f"{self.at_once} at once"
        return f"pods admitted, {how}, {self.existing:,} in place"


def measures(pods: int, existing: Sequence[int] = EXISTING) -> list[Measure]:
    return [Measure(number, at_once, pods) for at_once in AT_ONCE for number in existing]


@dataclass
class Bench:
    """Rows of one measure each, filled in turns: both sides once, then both again."""

    directory: Path
    sides: list[str]
    disk: Disk = field(default_factory=Disk)
    rates: dict[Measure, Row] = field(default_factory=dict)
    written: dict[Measure, Row] = field(default_factory=dict)
    checkpoint_bytes: dict[int, int] = field(default_factory=dict)  # by allocations in place

    async def take(self, measures: Sequence[Measure], repetitions: int) -> None:
        """Take measures. Those with the same number of existing allocations share one run of the plugin."""
        for existing in dict.fromkeys(measure.existing for measure in measures):
            wanted = [measure for measure in measures if measure.existing == existing]
            async with self._plugin(existing + max(measure.pods for measure in wanted)) as root:
                for _ in range(repetitions):
                    await self._repeat(wanted, root)

    async def _repeat(self, wanted: Sequence[Measure], root: Path) -> None:
        self.disk.look(self.directory)
        for measure in wanted:
            for side in self.sides:
                await self._take(measure, side, root)
            size = self.checkpoint_bytes[measure.existing]
            self._row(self.rates, measure).add(FILE_WRITES, replace_rate(self.directory / "floor", 50, size))

    @asynccontextmanager
    async def _plugin(self, devices: int) -> AsyncIterator[Path]:
        """Yield a node's root with a plugin that waits for a kubelet."""
        root = Path(tempfile.mkdtemp(prefix="adm", dir=self.directory))
        folder = root / "device-plugins"
        folder.mkdir()
        flags = [f"--directory={folder}", f"--resource={RESOURCE}", f"--devices={devices}"]
        try:
            async with process([PROGRAM, "plugin", *flags], log=root / "plugin.log", ready=line("waiting for")):
                yield root
        finally:
            shutil.rmtree(root)

    async def _take(self, measure: Measure, side: str, root: Path) -> None:
        print(f"… {side}: {measure.what}", file=sys.stderr, flush=True)
        folder = root / "device-plugins"
        both = [f"--directory={folder}", f"--resource={RESOURCE}"]
        await anyio.run_process([PROGRAM, "prepare", *both, f"--existing={measure.existing}"])
        command = _ours(measure) if side == OURS else _theirs(measure, root)
        with (root / f"{side}.log").open("ab") as log:
            answer = await anyio.run_process([*command, *both, f"--pods={measure.pods}"], cwd=ROOT, stderr=log)
        figures: dict[str, float] = json.loads(answer.stdout)
        _check(measure, figures, folder / device_checkpoint.FILE_NAME)
        self.checkpoint_bytes[measure.existing] = int(figures["checkpoint_bytes"])
        self._row(self.rates, measure).add(side, figures["rate"])
        self._row(self.written, measure).add(side, figures["written_bytes"] / measure.pods / 1024)

    def _row(self, rows: dict[Measure, Row], measure: Measure) -> Row:
        unit = "/s" if rows is self.rates else "KiB"
        return rows.setdefault(measure, Row(measure.what, unit, more_is_better=rows is self.rates))


def _ours(measure: Measure) -> list[str]:
    return [sys.executable, "-m", "bench._device_manager", f"--at-once={measure.at_once}"]


def _theirs(measure: Measure, root: Path) -> list[str]:
    """Run the kubelet's manager in a mount namespace, because its directory is fixed."""
    bench = [str(PROGRAM), "bench", f"--concurrency={measure.at_once}"]
    return [sys.executable, "-m", kubelet_paths.__name__, str(root), *bench]


def _check(measure: Measure, figures: dict[str, float], checkpoint: Path) -> None:
    """Check that every pod has a device of its own, which the file records."""
    entries = decode(checkpoint.read_bytes()).entries or ()
    devices = {device for entry in entries for ids in (entry.devices or {}).values() for device in ids or ()}
    found = (figures["existing"], figures["admitted"], len(entries), len(devices))
    total = measure.existing + measure.pods
    if found != (measure.existing, measure.pods, total, total):
        raise SystemExit(f"{measure.what}: {found} in place, admitted, entries, devices; expected {total} in all")


def kept(rows: dict[Measure, Row], side: str, at_once: int) -> float | None:
    """Return a side's rate with the most existing allocations, relative to the rate with the fewest."""
    medians = {
        measure.existing: statistics.median(row.runs[side])
        for measure, row in rows.items()
        if measure.at_once == at_once and side in row.runs
    }
    return medians[max(medians)] / medians[min(medians)] if len(medians) > 1 else None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repetition with few pods")
    parser.add_argument("--pods", type=int, help="to admit per measurement")
    parser.add_argument("--existing", type=int, nargs="+", default=EXISTING, help="allocations in place")
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
    if not PROGRAM.is_file():  # it is also the plugin
        raise SystemExit(f"{PROGRAM.name} is not built: run `make peers`")
    options.directory.mkdir(parents=True, exist_ok=True)
    about = machine(options.directory)
    bench = Bench(options.directory.absolute(), [OURS] if options.alone else [OURS, KUBELET])
    wanted = [measure for measure in measures(options.pods, options.existing) if options.only in measure.what]
    await bench.take(wanted, options.repetitions)
    _print(about, bench, wanted)
    if options.json:
        settings = {"pods": options.pods, "repetitions": options.repetitions}
        rows = [bench.rates[measure] for measure in wanted]
        write(options.json, about, bench.disk, rows, settings | {"checkpoint_bytes": bench.checkpoint_bytes})


def _print(about: Machine, bench: Bench, wanted: Sequence[Measure]) -> None:
    appends, replaced = statistics.median(bench.disk.appends), statistics.median(bench.disk.replaced)
    print(f"{about.cores} cores, {about.system}, Python {about.python}, {about.file_system}, load {about.load}")
    print(f"disk: {appends:,.0f} fdatasyncs/s of 4 KiB appends, {replaced:,.0f} fsynced renames/s of 4 KiB")
    sizes = (f"{size:,} bytes with {existing:,} in place" for existing, size in sorted(bench.checkpoint_bytes.items()))
    print(f"checkpoint: {', '.join(sizes)}\n")
    others = [side for side in bench.sides if side != OURS]
    show("Pod admission", [bench.rates[measure] for measure in wanted], *others, FILE_WRITES)
    show("Written per pod, sockets included", [bench.written[measure] for measure in wanted], *others)
    for side in bench.sides:
        for at_once in AT_ONCE:
            if (share := kept(bench.rates, side, at_once)) is not None:
                print(f"{side}, {at_once} at a time: with the most in place {share:.0%} of the rate with the fewest")


if __name__ == "__main__":
    anyio.run(run, _options())
