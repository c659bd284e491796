"""Random devices for allocator problems: attributes, capacity, counters, taints and conditions.

An attribute that is a list on one device may be a single value, or of another type, on the next: nobody makes drivers
agree, and the constraints must say what that means."""

from collections.abc import Collection
from typing import Any

from devlet.kit.dice import Dice

Document = dict[str, Any]

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
MODELS = ("l4", "a100", "h100")
TAGS = ("a", "b", "c", "d")
VERSIONS = ("1.0.0", "1.2.0", "2.0.0", "2.1.3")
TAINT_KEYS = ("example.com/hot", "example.com/old", "maintenance")
COUNTERS = {"memory": ("10Gi", "20Gi", "40Gi"), "slices": ("1", "2", "3")}

# name: (key of one value, key of several, values)
LISTS: dict[str, tuple[str, str, tuple[object, ...]]] = {
    "links": ("int", "ints", (0, 1, 2, 3)),
    "flags": ("bool", "bools", (True, False)),
    "tags": ("string", "strings", TAGS),
    "abi": ("version", "versions", VERSIONS),
}


def device(dice: Dice, themes: Collection[str], index: int, counter_sets: Collection[str] = ()) -> Document:
    made: Document = {"name": f"dev-{index}", "attributes": attributes(dice, themes, index)}
    if capacity := _capacity(dice, themes):
        made["capacity"] = capacity
    if "shared" in themes and dice.chance(0.7):
        made["allowMultipleAllocations"] = True
    if counter_sets and dice.chance(0.85):
        made["consumesCounters"] = _consumption(dice, counter_sets)
    if "taints" in themes and dice.chance(0.4):
        made["taints"] = [_taint(dice) for _ in range(dice.number(1, 2))]
    if "binding" in themes:
        made |= _binding(dice)
    return made


def attributes(dice: Dice, themes: Collection[str], index: int) -> Document:
    every: Document = {
        "model": {"string": dice.pick(MODELS)},
        "index": {"int": index},
        "numa": {"int": dice.number(0, 1)},
        "healthy": {"bool": dice.chance(0.8)},
        "driverVersion": {"version": dice.pick(VERSIONS)},
        PCIE_ROOT: {"string": f"pci0000:0{dice.number(0, 2)}"},
    }
    if "lists" in themes:
        every |= {name: _list(dice, *LISTS[name]) for name in LISTS}
        if dice.chance(0.4):
            every[PCIE_ROOT] = {"strings": [f"pci0000:0{n}" for n in dice.some(range(3), 1, 2)]}
    if "drivers" in themes and dice.chance(0.3):
        every["gpu.example.com/model"] = {"string": dice.pick(MODELS)}  # another driver's domain
    if "errors" in themes and dice.chance(0.03):
        every["broken"] = {}
    return {name: value for name, value in every.items() if dice.chance(0.95)}


def _list(dice: Dice, one: str, several: str, values: tuple[object, ...]) -> Document:
    if dice.chance(0.25):
        return {one: dice.pick(values)}
    if dice.chance(0.05):
        return {"strings": dice.some(TAGS, 1, 2)}
    chosen = dice.some(values, 1, 3)
    return {several: [*chosen, chosen[0]] if dice.chance(0.1) else chosen}


def _capacity(dice: Dice, themes: Collection[str]) -> Document:
    found: Document = {}
    if dice.chance(0.9):
        found["memory"] = {"value": dice.pick(("10Gi", "40Gi", "80Gi"))}
        if "shared" in themes and dice.chance(0.7):
            found["memory"]["requestPolicy"] = _policy(dice)
    if "shared" in themes and dice.chance(0.5):
        found["bandwidth"] = {"value": "100"}
        if dice.chance(0.5):
            found["bandwidth"]["requestPolicy"] = {"default": dice.pick(("0", "30", "50"))}
    return found


def _policy(dice: Dice) -> Document:
    kind = dice.number(0, 3)
    if kind == 0:
        return {"default": dice.pick(("1Gi", "4Gi"))}
    if kind == 1:
        return {"default": "2Gi", "validValues": ["2Gi", "4Gi", "8Gi", "10Gi"]}
    bounds = {"min": dice.pick(("1Gi", "2Gi"))}
    if dice.chance(0.5):
        bounds["max"] = "8Gi"
    if kind == 3:
        bounds["step"] = dice.pick(("1Gi", "512Mi", "2Gi"))
    return {"default": bounds["min"], "validRange": bounds}


def counter_set(dice: Dice, name: str) -> Document:
    totals = {"memory": dice.pick(("40Gi", "80Gi", "100Gi")), "slices": dice.pick(("3", "4", "7"))}
    return {"name": name, "counters": {counter: {"value": total} for counter, total in totals.items()}}


def _consumption(dice: Dice, counter_sets: Collection[str]) -> list[Document]:
    return [
        {
            "counterSet": name,
            "counters": {c: {"value": dice.pick(COUNTERS[c])} for c in sorted(dice.some(sorted(COUNTERS), 1, 2))},
        }
        for name in dice.some(sorted(counter_sets), 1, 2 if dice.chance(0.2) else 1)
    ]


def _taint(dice: Dice) -> Document:
    taint: Document = {
        "key": dice.pick(TAINT_KEYS),
        "effect": dice.pick(("NoSchedule", "NoExecute", "NoSchedule", "None")),
    }
    return taint | ({"value": dice.pick(("yes", "no"))} if dice.chance(0.6) else {})


def _binding(dice: Dice) -> Document:
    found: Document = {}
    if dice.chance(0.35):
        found["bindingConditions"] = [f"example.com/{name}" for name in dice.some(("ready", "attached", "warm"), 1, 2)]
        found["bindingFailureConditions"] = ["example.com/failed"]
    if dice.chance(0.3):
        found["bindsToNode"] = True
    return found
