"""The common report of all benchmarks: the machine, the best rates of its disk, and ratios of medians.

Absolute figures depend on the machine, so both sides are measured in turns, in one run, on one disk.
"""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".cache" / "peers" / "bin"
BLOCK = 4096
OURS = "devlet"


@dataclass(frozen=True)
class Machine:
    cores: int
    system: str
    python: str
    file_system: str
    load: float  # of the last minute when the run began: shows other work on the machine


def machine(directory: Path) -> Machine:
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        file_system=_file_system(directory),
        load=round(os.getloadavg()[0], 1),
    )


def _file_system(directory: Path) -> str:
    """Return the type of the directory's file system."""
    path = directory.resolve()
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    on_path = [(len(point), type_) for point, type_ in mounts if path.is_relative_to(point)]
    return max(on_path)[1] if on_path else "unknown"


@dataclass
class Disk:
    """Rates per second, one figure per measurement."""

    appends: list[float] = field(default_factory=list)  # 4 KiB each, followed by fdatasync
    replaced: list[float] = field(default_factory=list)  # temporary file, fsync, rename

    def look(self, directory: Path, count: int = 100) -> None:
        """Measure once more. Disk speed varies, so measure it between the measurements and not only before them."""
        directory.mkdir(parents=True, exist_ok=True)
        self.appends.append(_append_rate(directory / "appended", count))
        self.replaced.append(replace_rate(directory / "replaced", count))


def _append_rate(path: Path, count: int) -> float:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append() -> None:
        os.write(file, bytes(BLOCK))
        os.fdatasync(file)

    try:
        return _rate(count, append)
    finally:
        os.close(file)
        path.unlink()


def replace_rate(path: Path, count: int, size: int = BLOCK) -> float:
    """Return how many files of that size can be replaced per second: temporary file, fsync, rename."""
    content = bytes(size)

    def replace() -> None:
        with path.with_suffix(".new").open("wb") as new:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        path.with_suffix(".new").replace(path)

    try:
        return _rate(count, replace)
    finally:
        path.unlink(missing_ok=True)


def _rate(count: int, act: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(count):
        act()
    return count / (time.perf_counter() - start)


@dataclass
class Row:
    """One quantity, measured several times on each side."""

    what: str
    unit: str
    more_is_better: bool = True  # false for durations
    runs: dict[str, list[float]] = field(default_factory=dict)  # by side; ours is OURS

    def add(self, side: str, figure: float) -> None:
        self.runs.setdefault(side, []).append(figure)

    def ratio(self, side: str) -> float | None:
        """Return our median relative to theirs; above 1 ours is better. None if one of the two was not measured, or is
        zero."""
        if OURS not in self.runs or side not in self.runs:
            return None
        ours, theirs = statistics.median(self.runs[OURS]), statistics.median(self.runs[side])
        if not ours or not theirs:
            return None
        return ours / theirs if self.more_is_better else theirs / ours


def show(title: str, rows: Sequence[Row], *sides: str) -> None:
    """Format a table that can be copied into a page of the documentation."""
    table = Table(title=title, title_justify="left", box=box.MARKDOWN)
    table.add_column("what")
    for heading in (OURS, *(heading for side in sides for heading in (side, "ratio"))):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [_figure(row, OURS)]
        for side in sides:
            cells += [_figure(row, side), _ratio(row, side)]
        table.add_row(row.what, *cells)
    Console(width=140).print(table)


def _ratio(row: Row, side: str) -> str:
    ratio = row.ratio(side)
    return "–" if ratio is None else f"{ratio:.1f} ×" if ratio >= 10 else f"{ratio:.2f} ×"


def _figure(row: Row, side: str) -> str:
    if side not in row.runs:
        return "–"
    value = statistics.median(row.runs[side])
    return f"{value:,.0f} {row.unit}" if value >= 100 else f"{value:.3g} {row.unit}"


def resident_mebibytes(pid: int | str = "self", which: str = "VmRSS") -> float:
    """Return the process's resident memory; with `VmHWM` its peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{which}:"))


def written_bytes() -> int:
    """Return the bytes that this process has written so far, to files and sockets."""
    found = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(found["wchar"])


def write(path: Path, about: Machine, disk: Disk, rows: Sequence[Row], settings: Mapping[str, object]) -> None:
    """Write everything as JSON: each single run, not only the medians."""
    document = {
        "machine": asdict(about),
        "settings": dict(settings),
        "disk": asdict(disk),
        "rows": [asdict(row) | {"ratios": _ratios(row)} for row in rows],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def _ratios(row: Row) -> dict[str, float | None]:
    return {side: row.ratio(side) for side in row.runs if side != OURS}
