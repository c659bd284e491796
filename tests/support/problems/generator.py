"""Allocation problems: random ones of every theme, and those that benchmarks use.

A problem is a document as in `tests/vectors/allocator_problems.jsonl`, without `expected`. The same arguments give the
same problem, on every machine. Problems are small on purpose: the reference tries all combinations, and one with ten
devices more than these keeps it busy for minutes."""

from collections.abc import Collection
from typing import Any

from devlet.kit.dice import Dice
from tests.support.problems import claims as problem_claims
from tests.support.problems import slices as problem_slices

Document = dict[str, Any]

# What a problem may contain. Whatever is not named does not appear.
THEMES = (
    "admin",  # requests with adminAccess
    "all",  # allocationMode All
    "allocated",  # devices that are taken, as a whole or in part
    "binding",  # bindingConditions and bindsToNode
    "config",  # opaque parameters of classes and claims
    "distinct",  # distinctAttribute
    "drivers",  # a third driver, and attributes in the domain of another
    "errors",  # selectors that fail, classes that are missing, attributes without a value
    "lists",  # attributes that are lists, beside single values
    "match",  # matchAttribute
    "nodes",  # pools that are not of one node
    "partition",  # counters
    "pools",  # pools that are incomplete, invalid or being replaced
    "prioritized",  # firstAvailable
    "shared",  # devices for several claims, with capacity that is consumed
    "taints",  # and tolerations
)


def random_problem(seed: int, themes: Collection[str] = THEMES, name: str = "") -> Document:
    """Everything in the themes can appear, in one problem, and mostly some of it does."""
    if unknown := set(themes) - set(THEMES):
        raise ValueError(f"no theme {min(unknown)!r}; there are {', '.join(THEMES)}")
    dice = Dice(seed)
    nodes = [_node(f"n{n}", f"z{n % 2}") for n in range(dice.number(1, 3))]
    slices = problem_slices.slices(dice, themes, nodes)
    return {
        "name": name or f"{seed}-{'+'.join(sorted(themes))}",
        "theme": "+".join(sorted(themes)),
        "nodes": nodes,
        "classes": problem_claims.classes(themes),
        "slices": slices,
        "allocated": problem_claims.allocated(dice, slices) if "allocated" in themes and dice.chance(0.7) else [],
        "claims": problem_claims.claims(dice, themes),
    }


def mixed_problem(seed: int, always: Collection[str] = (), most: int = 6) -> Document:
    """A random problem of some themes, of which `always` are."""
    dice = Dice(seed + (1 << 32))
    others = dice.some([theme for theme in THEMES if theme not in always], 1, most)
    return random_problem(seed, sorted({*always, *others}))


def _node(name: str, zone: str) -> Document:
    return {"metadata": {"name": name, "labels": {"zone": zone, "kubernetes.io/hostname": name}}}


BENCH_DRIVER = "test-driver.cdi.k8s.io"  # of the scheduler's own benchmarks
BENCH_MODELS = ("l4", "a10", "h100", "a100")


def bench_problem(nodes: int, devices_per_node: int, claims: int | None = None, mode: str = "fill-rotate") -> Document:
    """Claims for one device each, of one model in four; unless told otherwise, as many as there are such devices."""
    count = nodes * (devices_per_node // len(BENCH_MODELS)) if claims is None else claims
    mine = f'["{BENCH_DRIVER}"]'
    wanted = (
        f'device.attributes{mine}.model == "{BENCH_MODELS[-1]}" && '
        f'device.capacity{mine}.memory.compareTo(quantity("40Gi")) >= 0'
    )
    return {
        "name": f"{mode}-{nodes}x{devices_per_node}",
        "mode": mode,
        "nodes": [_node(f"n{n}", f"z{n % 2}") for n in range(nodes)],
        "classes": [_bench_class()],
        "slices": [_bench_slice(f"n{n}", devices_per_node) for n in range(nodes)],
        "allocated": [],
        "claims": [_bench_claim(n, [_request("r", 1, wanted)]) for n in range(count)],
    }


def symmetric_problem(n: int, k: int) -> Document:
    """Request r for k of n devices that are all the same, request q for n of them: it cannot fit, k are missing."""
    requests = [_request("r", k), _request("q", n)]
    return {
        "name": f"symmetric-{n}-{k}",
        "nodes": [_node("n0", "z0")],
        "classes": [_bench_class()],
        "slices": [_bench_slice("n0", n, same=True)],
        "allocated": [],
        "claims": [_bench_claim(0, requests)],
    }


def _bench_class() -> Document:
    selector = {"cel": {"expression": f'device.driver == "{BENCH_DRIVER}"'}}
    return {"metadata": {"name": "test-class"}, "spec": {"selectors": [selector]}}


def _bench_slice(node: str, devices: int, same: bool = False) -> Document:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    listed = [_bench_device(index, 0 if same else index) for index in range(devices)]
    spec = {"driver": BENCH_DRIVER, "pool": pool, "nodeName": node, "devices": listed}
    return {"metadata": {"name": f"{node}-slice"}, "spec": spec}


def _bench_device(number: int, index: int) -> Document:
    attributes = {
        "model": {"string": BENCH_MODELS[index % len(BENCH_MODELS)]},
        "index": {"int": index},
        "numa": {"int": index % 2},
        "healthy": {"bool": True},
        "driverVersion": {"version": "3.4.1"},
    }
    return {"name": f"dev-{number}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}


def _request(name: str, count: int, *expressions: str) -> Document:
    wish: Document = {"deviceClassName": "test-class", "allocationMode": "ExactCount", "count": count}
    if expressions:
        wish["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    return {"name": name, "exactly": wish}


def _bench_claim(number: int, requests: list[Document]) -> Document:
    metadata = {"name": f"claim-{number}", "namespace": "default", "uid": f"uid-{number}"}
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
