"""The node of the testing kit: how long a test waits for it. `python bench/fixture.py [--quick]`.

Compares a node in the process of the test (`devlet.testing.node.Node`), with its API server, store, scheduler,
controllers and agent, with the same node as a separate process, `devlet up`. Imports, which happen once per process,
are not counted. A node is ready when drivers can register and pods are served.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench._report import OURS, Disk, Machine, Row, machine, resident_mebibytes, show, write

from devlet.kit.processes import spawn
from devlet.testing.embedded import embedded_api
from devlet.testing.grpc_loop import GrpcLoop
from devlet.testing.node import Node
from devlet.testing.roots import temporary_root

PROCESS = "devlet up"
SIDE_BY_SIDE = 8
PROCESSES = 5  # repetitions that include the separate process, which takes long

ONE = "start of one node"
ON_DISK = "start of one node, on disk"
MANY = f"start of {SIDE_BY_SIDE} nodes at once, until the last is ready"
STOP = "stop of one node"
RESTART = "restart of one node"
CRASH = "crash and restart of one node"
POD = "pod created to pod running"
MEMORY = "memory of one more node"
MEASURES = (ONE, ON_DISK, MANY, STOP, RESTART, CRASH, POD, MEMORY)


@dataclass
class Bench:
    directory: Path
    disk: Disk = field(default_factory=Disk)
    rows: dict[str, Row] = field(default_factory=dict)

    async def take(self, *, alone: bool) -> None:
        """Take every measure once."""
        await self._one()
        with temporary_root(self.directory) as root:
            self.disk.look(root, 20)
            began = time.perf_counter()
            async with Node.start(root):
                self._add(ON_DISK, began)
        await self._many()
        if not alone:
            await self._process()

    async def _one(self) -> None:
        began = time.perf_counter()
        async with Node.start() as node:
            self._add(ONE, began)
            began = time.perf_counter()
            await node.create_pod("p")
            await node.until_running("p")
            self._add(POD, began)
            began = time.perf_counter()
            await node.restart()
            self._add(RESTART, began)
            began = time.perf_counter()
            await node.crash()
            await node.restart()
            self._add(CRASH, began)
            began = time.perf_counter()
        self._add(STOP, began)

    async def _many(self) -> None:
        began = time.perf_counter()
        ready, done = anyio.Semaphore(0), anyio.Event()

        async def live() -> None:
            async with Node.start():
                ready.release()
                await done.wait()

        async with anyio.create_task_group() as tasks:
            for _ in range(SIDE_BY_SIDE):
                tasks.start_soon(live)
            for _ in range(SIDE_BY_SIDE):
                await ready.acquire()
            self._add(MANY, began)
            done.set()

    async def first(self) -> None:
        """Measure what happens once per process, and the memory of nodes before earlier ones have left memory for
        reuse."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(Node.start())
            before = resident_mebibytes()
            for _ in range(SIDE_BY_SIDE):
                await stack.enter_async_context(Node.start())
            self._row(MEMORY, "MiB").add(OURS, (resident_mebibytes() - before) / SIDE_BY_SIDE)

    async def _process(self) -> None:
        with temporary_root() as root:
            began = time.perf_counter()
            async with embedded_api(root, control=True, start=spawn):
                self._add(ONE, began, PROCESS)

    def _add(self, what: str, began: float, side: str = OURS) -> None:
        self._row(what, "ms").add(side, (time.perf_counter() - began) * 1000)

    def _row(self, what: str, unit: str) -> Row:
        return self.rows.setdefault(what, Row(what, unit, more_is_better=False))

    def table(self) -> list[Row]:
        return [self.rows[what] for what in MEASURES if what in self.rows]


def _options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--repetitions", type=int, help="of which the median is shown")
    temporary = Path(tempfile.gettempdir())
    parser.add_argument("--directory", type=Path, default=temporary, help="on the disk to measure; a short path")
    parser.add_argument("--alone", action="store_true", help="without `devlet up`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single figure there")
    options = parser.parse_args(argv)
    options.repetitions = options.repetitions or (3 if options.quick else 20)
    return options


async def run(options: argparse.Namespace) -> None:
    about, bench = machine(options.directory), Bench(options.directory)
    await bench.first()
    for number in range(options.repetitions):
        print(f"… {number + 1} of {options.repetitions}", file=sys.stderr, flush=True)
        await bench.take(alone=options.alone or number >= PROCESSES)
    _print(about, bench, options)
    if options.json:
        write(options.json, about, bench.disk, bench.table(), {"repetitions": options.repetitions})


def _print(about: Machine, bench: Bench, options: argparse.Namespace) -> None:
    print(f"{about.cores} cores, {about.system}, Python {about.python}, {about.file_system}, load {about.load}")
    print(f"disk: {statistics.median(bench.disk.replaced):,.0f} fsynced renames/s of 4 KiB\n")
    show("A node for a test", bench.table(), *([] if options.alone else [PROCESS]))


if __name__ == "__main__":
    anyio.run(run, _options(), backend_options={"loop_factory": GrpcLoop})
