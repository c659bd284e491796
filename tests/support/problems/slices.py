"""Random pools of devices for allocator problems, cut into slices.

The order of the slices in the problem is of chance: the allocator is who sorts them by name, and pools by driver and
name."""

from collections.abc import Collection, Sequence
from typing import Any

from devlet.kit.dice import Dice
from tests.support.problems.devices import counter_set, device

Document = dict[str, Any]

DRIVERS = ("gpu.example.com", "nic.example.com")
THIRD_DRIVER = "acc.example.com"
MOST_DEVICES = 6  # of a pool: the reference tries all combinations


def slices(dice: Dice, themes: Collection[str], nodes: Sequence[Document]) -> list[Document]:
    names = [node["metadata"]["name"] for node in nodes]
    found: list[Document] = []
    for driver in (*DRIVERS, THIRD_DRIVER) if "drivers" in themes else DRIVERS:
        for name in names:
            if dice.chance(0.92):
                found += _pool(dice, themes, driver, name, [{"nodeName": name}])
        if "nodes" in themes and dice.chance(0.8):
            found += _pool(dice, themes, driver, dice.pick(("fabric", "a-fabric")), _reaches(dice, names))
    return dice.shuffled(found)


def _reaches(dice: Dice, names: Sequence[str]) -> list[Document]:
    """How the slices of a pool that is not local say where they can be used."""
    zone = {"key": "zone", "operator": "In", "values": [dice.pick(("z0", "z1"))]}
    name = {"key": "metadata.name", "operator": "In", "values": [dice.pick(names)]}
    not_zone = {"key": "zone", "operator": "NotIn", "values": ["z0"]}
    every: list[Document] = [
        {"allNodes": True},
        {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
        {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [zone, not_zone], "matchFields": [name]}]}},
        {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [name]}]}},
        {"perDeviceNodeSelection": True},
    ]
    return dice.some(every, 1, 2)


def _pool(dice: Dice, themes: Collection[str], driver: str, pool: str, reaches: list[Document]) -> list[Document]:
    sets = [f"set{n}" for n in range(dice.number(1, 2))] if "partition" in themes and dice.chance(0.8) else []
    devices = [device(dice, themes, index, sets) for index in range(dice.number(2, MOST_DEVICES))]
    for each in devices:
        _spell_once(each.get("attributes", {}), driver)
    if dice.chance(0.2):
        devices = dice.shuffled(devices)
    contents: list[Document] = [{"devices": part} for part in _cut(dice, devices)]
    if sets:
        contents.append({"sharedCounters": [counter_set(dice, name) for name in sets]})
    made = [
        {
            "metadata": {"name": f"{dice.pick('abc')}-{pool}-{driver.split('.')[0]}-{number}"},
            "spec": {
                "driver": driver,
                "pool": {"name": pool, "generation": 2, "resourceSliceCount": len(contents)},
                **_reach(dice, dice.pick(reaches), content, reaches),
                **content,
            },
        }
        for number, content in enumerate(contents)
    ]
    return _spoilt(dice, made) if "pools" in themes and dice.chance(0.25) else made


def _spell_once(attributes: Document, driver: str) -> None:
    """Which of two spellings of one attribute counts is undefined in the reference."""
    for name in list(attributes):
        if f"{driver}/{name}" in attributes:
            del attributes[name]


def _reach(dice: Dice, reach: Document, content: Document, reaches: list[Document]) -> Document:
    """With a choice per device, each device gets one."""
    if "perDeviceNodeSelection" not in reach:
        return reach
    if "devices" not in content:
        return {"allNodes": True}
    of_devices = [{"allNodes": True}, {"nodeName": "n0"}, {"nodeName": "n1"}]
    of_devices += [other for other in reaches if "nodeSelector" in other]
    for each in content["devices"]:
        each |= dice.pick(of_devices)
    return reach


def _cut(dice: Dice, devices: list[Document]) -> list[list[Document]]:
    if len(devices) < 2 or dice.chance(0.5):
        return [devices]
    at = dice.number(1, len(devices) - 1)
    return [devices[:at], devices[at:]]


def _spoilt(dice: Dice, pool: list[Document]) -> list[Document]:
    """A pool in the middle of an update, or wrong."""
    first = pool[0]
    kind = dice.number(0, 5)
    if kind == 0:
        return pool[1:]
    if kind == 1:
        first["spec"]["pool"]["resourceSliceCount"] += 1
    elif kind in (2, 3):
        return [*pool, _other_generation(first, -1 if kind == 2 else 1)]
    elif kind == 4 and first["spec"].get("devices"):
        first["spec"]["devices"] = [*first["spec"]["devices"], first["spec"]["devices"][0]]
    elif first["spec"].get("devices"):
        consumed = {"counterSet": "unknown", "counters": {"memory": {"value": "1Gi"}}}
        first["spec"]["devices"][0]["consumesCounters"] = [consumed]
    return pool


def _other_generation(document: Document, step: int) -> Document:
    spec = document["spec"]
    pool = spec["pool"] | {"generation": spec["pool"]["generation"] + step, "resourceSliceCount": 1}
    return {"metadata": {"name": f"{document['metadata']['name']}-again"}, "spec": {**spec, "pool": pool}}
