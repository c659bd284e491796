"""The pools that a node can use, in the order in which their devices are tried.

Only slices of a pool's highest generation count, and only if they are complete. A pool that is being replaced
contributes no devices, but is kept, because mode All cannot be satisfied while some devices are unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from devlet.alloc.features import Features, Rules
from devlet.alloc.inventory import Inventory, PoolKey, SliceEntry
from devlet.errors import InvalidInput
from devlet.objects.identifiers import NodeName
from devlet.objects.selectors import nodes as node_selectors
from devlet.objects.types.node import Node, NodeSelector
from devlet.objects.values.quantity import Quantity

__all__ = ["Pool", "PoolSlice", "gather"]

CounterKey = tuple[str, str]
"""Counter set and counter."""


@dataclass(frozen=True, slots=True)
class PoolSlice:
    """A slice with the bits of the devices that the node can reach."""

    entry: SliceEntry
    reachable: int


@dataclass(slots=True)
class Pool:
    """A pool. `problem` says why its devices cannot be used: incomplete pools miss slices, invalid pools contradict
    themselves.

    `others` are slices for other nodes whose devices take from the same counters; `revisions` tell when that last
    changed.
    """

    key: PoolKey
    revisions: Mapping[PoolKey, int]
    slices: tuple[PoolSlice, ...] = ()
    others: tuple[SliceEntry, ...] = ()
    counters: Mapping[CounterKey, int] | None = None
    is_incomplete: bool = False
    problem: str = ""
    _left: tuple[int, Mapping[CounterKey, int]] | None = None

    @property
    def is_usable(self) -> bool:
        return not self.problem

    @property
    def name(self) -> str:
        return f"{self.key[0]}/{self.key[1]}"

    def available(self) -> Mapping[CounterKey, int]:
        """Return what is left of the counters; negative if claims have more than exists."""
        revision = self.revisions.get(self.key, 0)
        if self._left is None or self._left[0] != revision:
            self._left = (revision, self._computed())
        return self._left[1]

    def _computed(self) -> dict[CounterKey, int]:
        left = dict(self.counters or {})
        for entry in (*(slice.entry for slice in self.slices), *self.others):
            for device in entry.devices:
                if device.counters and device.is_allocated:
                    for key, amount in device.counters:
                        if key in left:
                            left[key] -= amount
        return left


def gather(inventory: Inventory, node: Node, features: Features, rules: Rules) -> list[Pool]:
    """Gather the pools of a node. Raises InvalidInput if a node selector cannot be parsed."""
    groups: dict[PoolKey, list[PoolSlice]] = {}
    for entry in inventory.slices_for(node.name):
        spec = entry.slice.spec
        if not features.partitionable_devices and (spec.per_device_node_selection is not None or spec.shared_counters):
            continue
        reachable = _reachable(entry, node)
        if reachable is not None:
            _add(groups.setdefault(entry.pool, []), PoolSlice(entry, reachable))
    pools = [_pool(inventory, key, slices, features, rules) for key, slices in groups.items()]
    return sorted((pool for pool in pools if pool), key=_order)


def _order(pool: Pool) -> tuple[bool, bytes, bytes]:
    binding = any(slice.entry.bindings for slice in pool.slices)
    return (binding, pool.key[0].encode(), pool.key[1].encode())


def _reachable(entry: SliceEntry, node: Node) -> int | None:
    """Return the bits of the devices that the node can reach; None if the slice is not for the node at all."""
    spec, everything = entry.slice.spec, (1 << len(entry.devices)) - 1
    if spec.shared_counters:
        return everything
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        matches = node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector, f"slice {entry.name}")
        return everything if matches else None
    if not spec.per_device_node_selection:
        return None
    bits = 0
    for device in entry.devices:
        d = device.device
        where = f"device {d.name} in slice {entry.name}"
        bits |= node_matches(node, d.node_name, d.all_nodes, d.node_selector, where) << device.bit
    return bits or None


def node_matches(
    node: Node, name: NodeName | None, all_nodes: bool | None, selector: NodeSelector | None, where: str
) -> bool:
    """Return whether something for a named node, for all nodes, or for selected nodes applies to the node."""
    if name:
        return node.name == name
    if all_nodes:
        return True
    if selector is None:
        return False
    try:
        parsed = node_selectors.parsed(selector)
    except InvalidInput as e:
        raise InvalidInput(f"{where}: node selector cannot be understood: {e}") from e
    return parsed.matches_node(node.name, node.metadata.labels)


def _add(slices: list[PoolSlice], slice: PoolSlice) -> None:
    """Add a slice, keeping only the highest generation."""
    if slices and slice.entry.generation != slices[0].entry.generation:
        if slice.entry.generation < slices[0].entry.generation:
            return
        slices.clear()
    slices.append(slice)


def _pool(inventory: Inventory, key: PoolKey, slices: list[PoolSlice], features: Features, rules: Rules) -> Pool | None:
    """Build the pool; None if a newer generation replaces it."""
    generation, count = slices[0].entry.generation, slices[0].entry.count
    is_complete = len(slices) == count
    everywhere = list(inventory.slices_of(key))
    if not is_complete or rules.whole_pool_generation:
        if any(entry.generation > generation for entry in everywhere):
            return None
    if rules.whole_pool_generation and (differing := _counts(everywhere, generation)):
        return Pool(key, inventory.pool_revisions, problem=f"is invalid: its slices say that there are {differing}")
    others: list[SliceEntry] = []
    if not is_complete:
        current = [entry for entry in everywhere if entry.generation == generation]
        if len(current) != count:
            how = "of" if len(current) < count else "instead of"
            text = f"has {len(current)} {how} {count} slices"
            return Pool(
                key,
                inventory.pool_revisions,
                is_incomplete=True,
                problem=f"is being updated: generation {generation} {text}",
            )
        own = {slice.entry.name for slice in slices}
        others = [entry for entry in current if entry.name not in own]
    ordered = sorted(slices, key=lambda slice: slice.entry.name.encode())
    return _build(key, inventory.pool_revisions, ordered, others, features)


def _counts(entries: Iterable[SliceEntry], generation: int) -> str:
    """Describe the slice counts that slices of a generation state, if they differ."""
    counts = sorted({entry.count for entry in entries if entry.generation == generation})
    return " or ".join(map(str, counts)) if len(counts) > 1 else ""


def _build(
    key: PoolKey,
    revisions: Mapping[PoolKey, int],
    slices: list[PoolSlice],
    others: list[SliceEntry],
    features: Features,
) -> Pool:
    devices = slices
    counters: dict[CounterKey, int] = {}
    if features.partitionable_devices:
        devices = [slice for slice in slices if not slice.entry.slice.spec.shared_counters]
        sets = [set for slice in slices for set in slice.entry.slice.spec.shared_counters]
        counters = {
            (set.name, name): Quantity.parse(counter.value).nano
            for set in sets
            for name, counter in set.counters.items()
        }
        names = [set.name for set in sets]
    problem = _repeated("device name", [d.device.name for slice in devices for d in slice.entry.devices])
    if not problem and features.partitionable_devices:
        problem = _repeated("counter set name", names) or _unknown_counter(
            set(names), counters, (*(slice.entry for slice in slices), *others)
        )
    if problem:
        return Pool(key, revisions, problem=f"is invalid: {problem}")
    return Pool(key, revisions, tuple(devices), tuple(others), counters)


def _repeated(what: str, names: list[str]) -> str:
    if len(set(names)) == len(names):
        return ""
    seen = set()
    for name in names:
        if name in seen:
            return f"duplicate {what} {name}"
        seen.add(name)
    return ""


def _unknown_counter(sets: set[str], counters: Mapping[CounterKey, int], slices: Iterable[SliceEntry]) -> str:
    for entry in slices:
        for device in entry.devices:
            if not device.device.consumes_counters:
                continue
            for consumption in device.device.consumes_counters:
                if consumption.counter_set not in sets:
                    return f"device {device.device.name}: counter set {consumption.counter_set} not found"
                for name in consumption.counters:
                    if (consumption.counter_set, name) not in counters:
                        return f"device {device.device.name}: counter {name} not found in set {consumption.counter_set}"
    return ""
