"""devlet's allocator and CEL beside the reference's: claims placed and selectors evaluated per second. `python
bench/alloc.py [--quick]`.

Both read the same problems and run in turns, each in a process of its own: `devlet simulate --problems`, and
`dra-allocate`, which calls kube-scheduler's allocator as the scheduler does, with objects in memory. One in four
devices has the model that a claim asks for; a claim asks for one device of a model with enough memory. Each side times
only the placing. The reference's scan has a time limit; its rate is that of the claims it placed.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench._report import OURS, PEERS, ROOT, Disk, Row, machine, resident_mebibytes, show, write

from devlet.alloc import Allocator, Inventory
from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.alloc.selectors import compile_selector
from devlet.objects.documents import view
from devlet.objects.types.slice import Device, ResourceSlice
from tests.support.problems.generator import bench_problem, symmetric_problem

REFERENCE = "kube-scheduler"
ALLOCATE, CEL = PEERS / "dra-allocate", PEERS / "dra-cel"
SIZES = ((100, 20), (1000, 8), (5000, 8))

SELECTORS = {
    "a quantity": 'device.driver == "gpu.example.com" && '
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
    "a string": 'device.attributes["gpu.example.com"].model == "a100"',
    "a version": 'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.2.0"))',
    "a guard": 'has(device.attributes["gpu.example.com"].model) && '
    'device.attributes["gpu.example.com"].model in ["a100", "h100"]',
    "a binding": 'cel.bind(a, device.attributes["gpu.example.com"], a.healthy && a.index < 4)',
    "a regular expression": 'device.attributes["gpu.example.com"].model.matches("^a1")',
    "a loop": 'device.attributes["gpu.example.com"].all(name, name != "")',
}
DEVICE = {
    "driver": "gpu.example.com",
    "attributes": {
        "model": {"string": "a100"},
        "index": {"int": 3},
        "healthy": {"bool": True},
        "driverVersion": {"version": "1.3.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:01"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
}


@dataclass(frozen=True)
class Scan:
    mode: str
    nodes: int
    devices: int
    claims: int | None  # None: as many as there are devices for

    @property
    def what(self) -> str:
        return f"claims placed, {self.mode}, {self.nodes:,} nodes × {self.devices} devices"


def scans(quick: bool) -> list[Scan]:
    rotate = [Scan("fill-rotate", nodes, devices, 500 if quick else None) for nodes, devices in SIZES]
    scheduler = [Scan("scheduler", nodes, devices, 500) for nodes, devices in SIZES]
    return [*rotate, Scan("fill", 100, 20, None), *scheduler]


def place(scan: Scan, directory: Path, side: str, seconds: int) -> float:
    """Return claims per second."""
    print(f"… {side}: {scan.what}", file=sys.stderr, flush=True)
    problem = directory / "problem.jsonl"
    problem.write_text(json.dumps(bench_problem(scan.nodes, scan.devices, scan.claims, scan.mode)) + "\n")
    answer = _answer(side, problem, f"--max-seconds={seconds}")
    placed, done = answer["placed"], answer.get("done", scan.claims)
    if not placed or (done is not None and placed < done and scan.mode != "fill"):
        raise SystemExit(f"{scan.what}: {side} placed {placed} of {done}: there are devices for all")
    return float(placed / answer["seconds"])


def search(n: int, directory: Path, side: str) -> float:
    """Return the seconds until it is known that k of n and n of n identical devices are not available."""
    print(f"… {side}: symmetric search, n = {n}", file=sys.stderr, flush=True)
    problem = directory / "problem.jsonl"
    problem.write_text(json.dumps(symmetric_problem(n, n // 2)) + "\n")
    answer = _answer(side, problem)
    if [each["outcome"] for each in answer["answers"]] != ["no-fit"]:
        raise SystemExit(f"symmetric search, n = {n}: {side} says {answer}")
    return float(answer["seconds"])


def _answer(side: str, problem: Path, *options: str) -> dict[str, Any]:
    if side == OURS:
        command = [sys.executable, "-m", "devlet", "simulate", f"--problems={problem}", "--bench"]
    else:
        command = [str(ALLOCATE), "--bench", *options, str(problem)]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    return answer


def evaluations(expression: str, seconds: float, directory: Path, side: str) -> float:
    """Return evaluations per second, for one device after the other."""
    if side != OURS:
        case = {"id": "1", "expression": expression, "device": DEVICE, "env": "stored"}
        cases = directory / "cases.json"
        cases.write_text(json.dumps([case | {"features": {"consumableCapacity": True, "listTypeAttributes": True}}]))
        out = subprocess.run([str(CEL), f"--bench={seconds}", str(cases)], check=True, capture_output=True).stdout
        return float(json.loads(out)["evaluationsPerSecond"])
    inputs = [DeviceInput(str(DEVICE["driver"]), view(Device, {"name": f"d{i}", **_spec()})) for i in range(1000)]
    program = compile_selector(expression, device_environment())
    if program.matches(inputs) != [True] * len(inputs):
        raise SystemExit(f"{expression}: {program.matches(inputs[:1])}")
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        program.matches(inputs)
        count += len(inputs)
    return count / (time.perf_counter() - start)


def _spec() -> dict[str, object]:
    return {key: value for key, value in DEVICE.items() if key != "driver"}


def many_devices(count: int) -> tuple[float, float]:
    """Return seconds for one new selector on this number of devices, and kilobytes of memory per device."""
    before = resident_mebibytes()
    inventory = Inventory()
    for number in range(count // 100):
        inventory.put_slice(view(ResourceSlice, _slice(number, 100)))
    gc.collect()
    memory = (resident_mebibytes() - before) * 1024 / count
    allocator = Allocator(inventory)
    start = time.perf_counter()
    expression = (
        'device.attributes["gpu.example.com"].index > 40 && device.attributes["gpu.example.com"].model == "a100"'
    )
    selectors = allocator.selectors.set_of((), (expression,))
    found = sum(allocator.selectors.match(entry, selectors).matching.bit_count() for entry in inventory.slices())
    seconds = time.perf_counter() - start
    if found != count // 100 * 59:
        raise SystemExit(f"{found} of {count} devices match")
    return seconds, memory


def _slice(number: int, devices: int) -> dict[str, object]:
    node = f"node-{number}"
    listed = [
        {
            "name": f"gpu-{i}",
            "attributes": {
                "model": {"string": "a100"},
                "index": {"int": i},
                "uuid": {"string": f"GPU-{number:08}-{i:04}"},
                "healthy": {"bool": True},
                "driverVersion": {"version": "1.3.0"},
                "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{i % 8:02}"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for i in range(devices)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": listed}
    return {"metadata": {"name": f"slice-{number}"}, "spec": spec}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repetition, few claims")
    parser.add_argument("--repetitions", type=int, help="of which the median is shown")
    parser.add_argument("--seconds", type=int, help="that the reference is given for a scan")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows that have this in them")
    parser.add_argument("--alone", action="store_true", help="without the reference")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single figure there")
    options = parser.parse_args()
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    options.seconds = options.seconds or (5 if options.quick else 30)
    return options


def measured(options: argparse.Namespace, directory: Path) -> list[Row]:
    sides = [OURS] if options.alone else [OURS, REFERENCE]
    rows: dict[str, Row] = {}

    def row(what: str, unit: str, more_is_better: bool = True) -> Row | None:
        return rows.setdefault(what, Row(what, unit, more_is_better)) if options.only in what else None

    for _ in range(options.repetitions):
        for scan in scans(options.quick):
            if found := row(scan.what, "/s"):
                for side in sides:
                    found.add(side, place(scan, directory, side, options.seconds))
        for n, asked in ((12 if options.quick else 16, sides), (20, [OURS])):
            if found := row(f"symmetric search, n = {n}", "s", more_is_better=False):
                for side in asked:
                    found.add(side, search(n, directory, side))
        for what, expression in SELECTORS.items():
            if found := row(f"selectors evaluated, {what}", "/s"):
                for side in sides:
                    found.add(side, evaluations(expression, 0.5 if options.quick else 1, directory, side))
        of_many = [row(what, unit, more_is_better=False) for what, unit in MANY]
        if any(of_many):
            for found, figure in zip(of_many, many_devices(100_000), strict=True):
                if found:
                    found.add(OURS, figure)
    return list(rows.values())


MANY = (("a new selector on 100,000 devices", "s"), ("memory per device", "KiB"))
BARS = {
    "claims placed, fill-rotate, 100 nodes": 3,
    "claims placed, fill-rotate, 1,000 nodes": 5,
    "claims placed, fill-rotate, 5,000 nodes": 15,
    "claims placed, fill, 100 nodes": 100,
    "claims placed, scheduler": 50,
    "selectors evaluated, a quantity": 10,
}
LONGEST = {"symmetric search, n = 20": 0.05, "a new selector on 100,000 devices": 0.2}


def missed(rows: list[Row]) -> list[str]:
    """Return the targets that were missed: ratios to the reference, and seconds."""
    found = []
    for row in rows:
        ratio, bar = row.ratio(REFERENCE), next((bar for what, bar in BARS.items() if row.what.startswith(what)), None)
        if ratio is not None and bar is not None and ratio < bar:
            found.append(f"{row.what}: {ratio:.1f} ×, should be {bar} ×")
        if row.what in LONGEST and (took := statistics.median(row.runs[OURS])) > LONGEST[row.what]:
            found.append(f"{row.what}: {took:.3g} s, should be less than {LONGEST[row.what]:g} s")
    return found


def main() -> None:
    options = _options()
    if not options.alone and not (ALLOCATE.is_file() and CEL.is_file()):
        raise SystemExit(f"{ALLOCATE.name} and {CEL.name} are not built: run `make peers`")
    about = machine(ROOT)
    with tempfile.TemporaryDirectory() as directory:
        rows = measured(options, Path(directory))
    show("Allocation", rows, *([] if options.alone else [REFERENCE]))
    for text in missed(rows):
        print(f"missed: {text}")
    if options.json:
        settings = {"repetitions": options.repetitions, "seconds": options.seconds, "only": options.only}
        write(options.json, about, Disk(), rows, settings)


if __name__ == "__main__":
    main()
