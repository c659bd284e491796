"""Pods with claims from a template, scheduled: devlet's scheduler and claim controller beside the reference's. `python
bench/schedule.py [--quick]`.

The workloads are the reference's own SchedulingWithResourceClaimTemplate. Each run starts a fresh system: `devlet up`;
`devlet control` on etcd and kube-apiserver; or kube-scheduler and kube-controller-manager on etcd and kube-apiserver.
All write durably and get the same load from this process, over HTTPS. The first half of the pods is bound before the
measurement, which goes from the first create of the second half until the last of them is bound.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import anyio
import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench import _schedule_check, _schedule_objects
from bench._report import OURS, ROOT, Disk, Row, machine, show, write
from bench._schedule_http import Target
from bench._schedule_load import Load, load
from bench._schedule_systems import EMBEDDED, ON_KUBE_APISERVER, PROGRAMS, REFERENCE, SYSTEMS, are_built

from devlet.cluster.client import Cluster, MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.objects.kinds import (
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
)

INIT, MEASURED = "init", "test"  # namespaces
AT_ONCE = 16  # nodes and slices that are created in advance, at a time


@dataclass(frozen=True)
class Workload:
    name: str
    nodes: int
    pods: int  # measured; the same number exists before
    devices: int  # per node

    def row(self, system: str) -> str:
        where = "embedded" if system == EMBEDDED else "on kube-apiserver"
        return f"pods bound, {self.name}, {where}"


FULL = (Workload("2000pods_100nodes", 100, 1000, 20), Workload("5000pods_500nodes", 500, 2500, 10))
QUICK = (Workload("200pods_20nodes", 20, 100, 10),)


async def schedule(workload: Workload, system: str, directory: Path) -> float:
    """Return pods per second."""
    async with SYSTEMS[system](directory) as target:
        async with connected(kubeconfig.connection([target.kubeconfig]), Settings(qps=0)) as cluster:
            await _prepare(cluster, workload)
            _tell(system, workload.name, "before", await _bind(cluster, target, INIT, workload.pods))
            took = await _bind(cluster, target, MEASURED, workload.pods)
            _tell(system, workload.name, "measured", took)
            if wrong := await _schedule_check.wrong(cluster, (INIT, MEASURED)):
                raise SystemExit("\n".join([f"{system}, {workload.name}: {len(wrong)} mistakes", *wrong[:10]]))
    return workload.pods / took.bound


async def _prepare(cluster: Cluster, workload: Workload) -> None:
    objects, nodes = _schedule_objects, [f"node-{number:04d}" for number in range(workload.nodes)]
    await cluster.create(DEVICE_CLASSES, objects.device_class())
    for namespace in (INIT, MEASURED):
        await cluster.create(NAMESPACES, objects.namespace(namespace))
        await cluster.create(RESOURCE_CLAIM_TEMPLATES, objects.claim_template(namespace), namespace)
    await _all_of(partial(_add_node, cluster, name, workload.devices) for name in nodes)


async def _add_node(cluster: Cluster, name: str, devices: int) -> None:
    await cluster.create(NODES, _schedule_objects.node(name))
    # kube-apiserver taints new nodes as not ready, and no node controller runs here that would remove the taint.
    await cluster.patch(NODES, name, MergePatch({"spec": {"taints": None}}))
    await cluster.create(RESOURCE_SLICES, _schedule_objects.resource_slice(name, devices))


async def _bind(cluster: Cluster, target: Target, namespace: str, count: int) -> Load:
    pods = [_schedule_objects.pod(namespace, number, target.scheduler) for number in range(count)]
    before = await cluster.list(PODS, namespace)
    return await load(target, namespace, [msgspec.json.encode(pod) for pod in pods], before.resource_version)


async def _all_of(acts: Iterable[Callable[[], Awaitable[None]]]) -> None:
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def one(act: Callable[[], Awaitable[None]]) -> None:
        async with limit:
            await act()

    async with anyio.create_task_group() as tasks:
        for act in acts:
            tasks.start_soon(one, act)


def _tell(system: str, workload: str, which: str, took: Load) -> None:
    text = f"created in {took.created:.1f} s, all bound after {took.bound:.1f} s"
    print(f"… {system}, {workload}, {which}: {text}", file=sys.stderr, flush=True)


def measured(options: argparse.Namespace, disk: Disk) -> list[Row]:
    rows: dict[str, Row] = {}
    for _ in range(options.repetitions):
        for workload, system in runs(options):
            disk.look(options.directory)
            with _fresh(options.directory) as directory:
                figure = anyio.run(schedule, workload, system, directory, backend_options={"use_uvloop": True})
            for row in _rows_of(rows, workload, system):
                row.add(REFERENCE if system == REFERENCE else OURS, figure)
    return list(rows.values())


def runs(options: argparse.Namespace) -> list[tuple[Workload, str]]:
    """Return the runs workload by workload, so that compared systems are measured at nearly the same time."""
    all_ = product(QUICK if options.quick else FULL, [EMBEDDED] if options.alone else SYSTEMS)
    return [(workload, system) for workload, system in all_ if options.only in f"{system}, {workload.name}"]


def _rows_of(rows: dict[str, Row], workload: Workload, system: str) -> list[Row]:
    """Return the rows to fill. The reference appears in both of ours."""
    ours = (EMBEDDED, ON_KUBE_APISERVER) if system == REFERENCE else (system,)
    return [rows.setdefault(workload.row(one), Row(workload.row(one), "/s")) for one in ours]


@contextmanager
def _fresh(parent: Path) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="schedule", dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


BARS = {
    FULL[0].row(EMBEDDED): 5,
    FULL[1].row(EMBEDDED): 10,
    FULL[0].row(ON_KUBE_APISERVER): 1,
    FULL[1].row(ON_KUBE_APISERVER): 1,
}


def missed(rows: list[Row]) -> list[str]:
    ratios = [(row.what, row.ratio(REFERENCE), BARS.get(row.what)) for row in rows]
    return [
        f"{what}: {ratio:.2f} ×, should be {bar} ×"
        for what, ratio, bar in ratios
        if ratio is not None and bar is not None and ratio < bar
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small workload")
    parser.add_argument("--repetitions", type=int, default=1, help="of which the median is shown")
    parser.add_argument("--directory", type=Path, default=ROOT / ".cache" / "bench", help="on the disk to measure")
    parser.add_argument("--only", default="", metavar="TEXT", help="runs that have this in 'SYSTEM, WORKLOAD'")
    parser.add_argument("--alone", action="store_true", help="without the reference's programs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single figure there")
    return parser.parse_args()


def main() -> None:
    options = _options()
    if not options.alone and not are_built():
        print(f"{', '.join(PROGRAMS)} are not all built, so devlet is measured alone. `make peers` builds them.")
        options.alone = True
    options.directory.mkdir(parents=True, exist_ok=True)
    about, disk = machine(options.directory), Disk()
    rows = measured(options, disk)
    print(f"{about.cores} cores, {about.system}, Python {about.python}, {about.file_system}, load {about.load}")
    print(f"disk: {statistics.median(disk.appends):,.0f} fdatasyncs/s of 4 KiB appends\n")
    show("Scheduling", rows, *([] if options.alone else [REFERENCE]))
    for text in missed(rows):
        print(f"missed: {text}")
    if options.json:
        write(options.json, about, disk, rows, {"repetitions": options.repetitions, "only": options.only})


if __name__ == "__main__":
    main()
