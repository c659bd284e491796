"""A node over time: its growth, the deletion of pods, and the restart. `python bench/churn.py [--quick]`.

Runs `devlet up` in a separate process, with a device plugin and a DRA driver beside it, both fakes in this process.

- **churn**: pods are created at a steady rate, run and are deleted; the resources of the process are printed regularly.
- **delete**: many running pods are deleted, one request each from 16 clients, and then all with one request.
- **restart**: devlet is stopped and started again while the pods run.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench import _churn_load as load
from bench._report import OURS, Disk, Machine, Row, machine, resident_mebibytes, show, write
from bench._schedule_http import Target, connected

from devlet.kit.processes import spawn
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.grpc_loop import GrpcLoop
from devlet.testing.roots import temporary_root

NODE = "node"
PARTS = ("churn", "restart", "delete")

EARLY = "memory after a third of the churn"
LATE = "memory at the end of the churn"
GONE = "pods that came and went"
CREATED = "pods created until they run"
READY = "start to ready with many pods"
QUIET = "processor time from the start until it is quiet"
WRITES = "writes after a restart"
EACH = f"pods deleted, {load.WRITERS} clients"
ALL = "pods deleted, one request"
COST = ": processor time for one"
MEASURES = (EARLY, LATE, GONE, CREATED, READY, QUIET, WRITES, EACH, EACH + COST, ALL, ALL + COST)
COUNTED = {
    "pods": load.PODS,
    "events": "/api/v1/events",
    "claims": "/apis/resource.k8s.io/v1/resourceclaims",
}
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Bench:
    options: argparse.Namespace
    root: Path
    disk: Disk = field(default_factory=Disk)
    rows: dict[str, Row] = field(default_factory=dict)
    looks: list[dict[str, float]] = field(default_factory=list)

    async def churn(self) -> None:
        options = self.options
        async with self._drivers(), self._node() as api, self._pods(load.target_of(api)) as pods:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._look_often, api, pods)
                await load.churn(pods, options.rate, options.seconds, options.alive)
                tasks.cancel_scope.cancel()
            last = await self._look(api, pods, options.seconds)
        after = [look["rss"] for look in self.looks if look["at"] >= options.seconds / 3]
        self._row(EARLY, "MiB", more=False).add(OURS, after[0])
        self._row(LATE, "MiB", more=False).add(OURS, last["rss"])
        self._row(GONE, "").add(OURS, last["gone"])

    async def _look_often(self, api: EmbeddedApi, pods: load.Pods) -> None:
        began = time.perf_counter()
        while True:
            await self._look(api, pods, time.perf_counter() - began)
            await anyio.sleep(self.options.every)

    async def _look(self, api: EmbeddedApi, pods: load.Pods, at: float) -> dict[str, float]:
        look = {"at": at, "rss": resident_mebibytes(api.pid), "cpu": _processor_seconds(api.pid), "gone": pods.gone}
        look |= {name: await count(load.target_of(api), path) for name, path in COUNTED.items()}
        look |= {suffix: _mebibytes(api.root / f"cluster.db{suffix}") for suffix in ("", "-wal")}
        if not self.looks:
            print("     at       RSS      CPU     gone     pods   events   claims       db      wal")
        print(
            f"{at:6.0f}s {look['rss']:6.0f}MiB {look['cpu']:7.0f}s {look['gone']:8.0f} {look['pods']:8.0f}"
            f" {look['events']:8.0f} {look['claims']:8.0f} {look['']:5.0f}MiB {look['-wal']:5.0f}MiB",
            flush=True,
        )
        self.looks.append(look)
        return look

    async def restart_and_delete(self) -> None:
        async with self._drivers():
            for one_by_one in (True, False):
                async with self._node() as api:
                    await self._fill(load.target_of(api))
                if "restart" in self.options.only:
                    await self._restart()
                if "delete" in self.options.only:
                    await self._delete(one_by_one)
                else:
                    return

    async def _fill(self, target: Target) -> None:
        async with self._pods(target) as pods:
            began = time.perf_counter()
            await load.fill(target, self.options.pods)
            await pods.until_running(self.options.pods)
            self._row(CREATED, "/s").add(OURS, self.options.pods / (time.perf_counter() - began))

    async def _restart(self) -> None:
        began = time.perf_counter()
        async with self._node() as api:
            took = time.perf_counter() - began
            self._row(READY, "s", more=False).add(OURS, took)
            before = await _version(load.target_of(api))
            cpu = await _until_quiet(api.pid)
            written = await _version(load.target_of(api)) - before
            self._row(QUIET, "s", more=False).add(OURS, cpu)
            self._row(WRITES, "", more=False).add(OURS, written)

    async def _delete(self, one_by_one: bool) -> None:
        async with self._node() as api, self._pods(load.target_of(api)) as pods:
            await _until_quiet(api.pid)
            cpu, began = _processor_seconds(api.pid), time.perf_counter()
            if one_by_one:
                names = [f"pod-{number:06d}" for number in range(self.options.pods)]
                await load.delete_each(pods.target, names)
            else:
                await load.delete_all(pods.target)
            await pods.until_gone(self.options.pods)
            took = time.perf_counter() - began
            how = EACH if one_by_one else ALL
            self._row(how, "/s").add(OURS, self.options.pods / took)
            each = (_processor_seconds(api.pid) - cpu) / self.options.pods * 1000
            self._row(how + COST, "ms", more=False).add(OURS, each)

    @asynccontextmanager
    async def _drivers(self) -> AsyncIterator[None]:
        """Run the drivers across restarts of devlet. Its first run creates the directories that they need."""
        async with self._node() as api:
            await load.publish(load.target_of(api), NODE, self._devices)
        async with load.drivers(self.root / "r", self._devices):
            yield

    @asynccontextmanager
    async def _node(self) -> AsyncIterator[EmbeddedApi]:
        file, root = self.root / "config.yaml", self.root / "r"
        file.write_text(f"apiVersion: devlet.dev/v1alpha1\nkind: Configuration\nnodeName: {NODE}\nmaxPods: 100000\n")
        root.mkdir(exist_ok=True, mode=0o700)
        self.disk.look(self.root / "disk", 20)
        async with embedded_api(root, control=True, arguments=["--config", str(file)], start=spawn) as api:
            yield api

    @property
    def _devices(self) -> int:
        return int(max(self.options.pods, 4 * self.options.alive, 10 * self.options.rate)) // 3 + 10

    @asynccontextmanager
    async def _pods(self, target: Target) -> AsyncIterator[load.Pods]:
        pods = load.Pods(target)
        async with anyio.create_task_group() as tasks:
            await tasks.start(pods.run)
            yield pods
            tasks.cancel_scope.cancel()

    def _row(self, what: str, unit: str, *, more: bool = True) -> Row:
        return self.rows.setdefault(what, Row(what, unit, more_is_better=more))


async def count(target: Target, path: str) -> int:
    async with connected(target) as connection:
        found = await connection.get(f"{path}?limit=1")
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))


async def _version(target: Target) -> int:
    async with connected(target) as connection:
        return int((await connection.get(f"{load.PODS}?limit=1"))["metadata"]["resourceVersion"])


async def _until_quiet(pid: int) -> float:
    """Wait until the process uses less than a tenth of a core for three seconds. Return the processor time that it
    used."""
    quiet = 0
    while quiet < 3:
        before = _processor_seconds(pid)
        await anyio.sleep(1)
        quiet = quiet + 1 if _processor_seconds(pid) - before < 0.1 else 0
    return _processor_seconds(pid)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _mebibytes(path: Path) -> float:
    return path.stat().st_size / (1 << 20) if path.exists() else 0.0


def _options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a short churn and few pods")
    parser.add_argument("--rate", type=float, default=17.0, help="pods per second that come and go")
    parser.add_argument("--seconds", type=float, help="how long they do")
    parser.add_argument("--alive", type=int, default=100, help="pods that run at a time meanwhile")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two looks")
    parser.add_argument("--pods", type=int, help="pods that are deleted, and that run during a restart")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="measure only this")
    temporary = Path(tempfile.gettempdir())
    parser.add_argument("--directory", type=Path, default=temporary, help="on the disk to measure; a short path")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single figure there")
    options = parser.parse_args(argv)
    options.seconds = options.seconds or (6 if options.quick else 1500)
    options.pods = options.pods or (50 if options.quick else 5000)
    return options


async def run(options: argparse.Namespace) -> None:
    about = machine(options.directory)
    bench = None
    rows: dict[str, Row] = {}
    with temporary_root(options.directory) as root:
        bench = Bench(options, root, rows=rows)
        if "churn" in options.only:
            await bench.churn()
    disk = bench.disk
    with temporary_root(options.directory) as root:
        bench = Bench(options, root, disk, rows, bench.looks)
        if {"restart", "delete"} & set(options.only):
            await bench.restart_and_delete()
    _print(about, bench)
    if options.json:
        settings = {name: getattr(options, name) for name in ("rate", "seconds", "alive", "pods")}
        write(options.json, about, bench.disk, list(bench.rows.values()), settings | {"looks": bench.looks})


def _print(about: Machine, bench: Bench) -> None:
    print(f"{about.cores} cores, {about.system}, Python {about.python}, {about.file_system}, load {about.load}")
    print(f"disk: {statistics.median(bench.disk.appends):,.0f} fdatasyncs/s of 4 KiB appends\n")
    show("A node over time", list(bench.rows.values()))


if __name__ == "__main__":
    anyio.run(run, _options(), backend_options={"loop_factory": GrpcLoop})
