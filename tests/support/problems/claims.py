"""Random claims for allocator problems, the classes they name, and claims that have devices already."""

from collections.abc import Collection, Sequence
from typing import Any

from devlet.kit.dice import Dice
from tests.support.problems.devices import LISTS, MODELS, PCIE_ROOT, TAGS, TAINT_KEYS
from tests.support.problems.slices import DRIVERS, THIRD_DRIVER

Document = dict[str, Any]

SHARE = "00000000-0000-4000-8000-{:012x}"


def classes(themes: Collection[str]) -> list[Document]:
    drivers = (*DRIVERS, THIRD_DRIVER) if "drivers" in themes else DRIVERS
    found = [_class(driver.split(".")[0], f'device.driver == "{driver}"') for driver in drivers]
    found.append(_class("any"))
    memory = 'device.capacity["gpu.example.com"].?memory.orValue(quantity("0"))'
    found.append(_class("big", 'device.driver == "gpu.example.com"', f'{memory}.isGreaterThan(quantity("20Gi"))'))
    if "config" in themes:
        for number, each in enumerate(found[:2]):
            each["spec"]["config"] = [{"opaque": {"driver": DRIVERS[0], "parameters": {"level": number}}}]
    return found


def _class(name: str, *expressions: str) -> Document:
    spec = {"selectors": [{"cel": {"expression": e}} for e in expressions]} if expressions else {}
    return {"metadata": {"name": name}, "spec": spec}


def claims(dice: Dice, themes: Collection[str]) -> list[Document]:
    return [_claim(dice, themes, index) for index in range(dice.pick((1, 1, 1, 2, 2, 3)))]


def _claim(dice: Dice, themes: Collection[str], index: int) -> Document:
    requests = [_request(dice, themes, f"r{n}") for n in range(dice.pick((1, 1, 2, 2, 3)))]
    devices: Document = {"requests": requests}
    refs = references(requests)
    if constraints := _constraints(dice, themes, refs):
        devices["constraints"] = constraints
    if "config" in themes and dice.chance(0.6):
        devices["config"] = [_config(dice, refs, number) for number in range(dice.number(1, 2))]
    return {"metadata": _metadata(f"claim-{index}", f"uid-{index}"), "spec": {"devices": devices}}


def _metadata(name: str, uid: str) -> Document:
    return {"name": name, "namespace": "default", "uid": uid}


def references(requests: Sequence[Document]) -> list[str]:
    """Every way to name a request, and a subrequest."""
    names = [request["name"] for request in requests]
    return names + [f"{r['name']}/{sub['name']}" for r in requests for sub in r.get("firstAvailable", ())]


def _request(dice: Dice, themes: Collection[str], name: str) -> Document:
    if "prioritized" in themes and dice.chance(0.5):
        subs = [{"name": f"s{n}", **_wish(dice, themes)} for n in range(dice.number(1, 3))]
        return {"name": name, "firstAvailable": subs}
    wish = _wish(dice, themes)
    if "admin" in themes and dice.chance(0.4):
        wish["adminAccess"] = dice.chance(0.85)
    return {"name": name, "exactly": wish}


def _wish(dice: Dice, themes: Collection[str]) -> Document:
    names = ["gpu", "gpu", "gpu", "nic", "nic", "any", "big", *(["acc"] if "drivers" in themes else [])]
    name = "missing" if "errors" in themes and dice.chance(0.04) else dice.pick(names)
    wish: Document = {"deviceClassName": name}
    if selectors := _selectors(dice, themes, name):
        wish["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    if "all" in themes and dice.chance(0.35):
        wish["allocationMode"] = "All"
    else:
        wish |= {"allocationMode": "ExactCount", "count": dice.pick((1, 1, 1, 1, 2, 2, 3))}
    if "taints" in themes and dice.chance(0.6):
        wish["tolerations"] = [_toleration(dice) for _ in range(dice.number(1, 2))]
    if "shared" in themes and dice.chance(0.5):
        wish["capacity"] = {"requests": _capacity_requests(dice)}
    return wish


def _selectors(dice: Dice, themes: Collection[str], class_name: str) -> list[str]:
    driver = {"nic": DRIVERS[1], "acc": THIRD_DRIVER}.get(class_name, DRIVERS[0])
    choices = _safe(dice, driver)
    if "lists" in themes:
        choices += 2 * _safe_lists(dice, driver)
    if "errors" in themes and dice.chance(0.15):
        choices = _risky(driver)
    return dice.some(choices, 1, dice.pick((1, 1, 2))) if dice.chance(0.35) else []


def _safe(dice: Dice, driver: str) -> list[str]:
    """They have a value for every device."""
    mine = f'device.attributes["{driver}"]'
    model = dice.pick(MODELS)
    return [
        f'{mine}.?model.orValue("") != "{model}"',
        f"!has({mine}.index) || {mine}.index < {dice.number(1, 4)}",
        f'cel.bind(a, {mine}, has(a.model) && a.model in ["{model}", "a100"])',
        f'"healthy" in {mine} && {mine}.healthy',
        f'{mine}.?driverVersion.orValue(semver("0.0.0")).isGreaterThan(semver("1.1.0"))',
        f'device.capacity["{driver}"].?memory.orValue(quantity("0")).compareTo(quantity("40Gi")) >= 0',
        "!device.allowMultipleAllocations",
        'device.driver.matches("^[gn]")',
    ]


def _safe_lists(dice: Dice, driver: str) -> list[str]:
    mine = f'device.attributes["{driver}"]'
    tag = dice.pick(TAGS)
    return [
        f'{mine}.?tags.orValue("").includes("{tag}")',
        f"has({mine}.links) && {mine}.links.includes({dice.number(0, 3)})",
        f'has({mine}.abi) && {mine}.abi.includes(semver("1.2.0"))',
        f"!has({mine}.flags) || !{mine}.flags.includes(false)",
        f'has({mine}.tags) && type({mine}.tags) == list && {mine}.tags.exists(t, t > "b")',
        f"has({mine}.links) && type({mine}.links) == list && size({mine}.links) > 1",
    ]


def _risky(driver: str) -> list[str]:
    """They fail for some devices, or all."""
    mine = f'device.attributes["{driver}"]'
    return [
        f"{mine}.numa == 0",
        f'{mine}.model == "a100"',
        f"{mine}.links.exists(l, l > 1)",
        f"size({mine}.tags) > 0",
        f'"a" in {mine}.tags',
        f"{mine}.links",
        f"{mine}.model < 3",
        f'{mine}.model.matches("(")',
        f'{mine}.tags.includes("a") || {mine}.nosuch == 1',
        "device.driver ==",
        "device.nosuch == 1",
        "device.driver",
    ]


def _toleration(dice: Dice) -> Document:
    """Also some that no API server would take, such as a value with Exists."""
    found: Document = {"operator": dice.pick(("Equal", "Exists", "Exists"))}
    if dice.chance(0.8):
        found["key"] = dice.pick(TAINT_KEYS)
    if dice.chance(0.5):
        found["value"] = dice.pick(("yes", "no"))
    if dice.chance(0.4):
        found["effect"] = dice.pick(("NoSchedule", "NoExecute"))
    return found


def _capacity_requests(dice: Dice) -> Document:
    found = {"memory": dice.pick(("1Gi", "1500Mi", "3Gi", "5Gi", "9Gi"))}
    if dice.chance(0.2):
        found["bandwidth"] = dice.pick(("10", "60"))
    if dice.chance(0.05):
        found["gpu.example.com/memory"] = "1Gi"  # names are compared as they are
    return found


def _constraints(dice: Dice, themes: Collection[str], refs: Sequence[str]) -> list[Document]:
    kinds = [
        kind for theme, kind in (("match", "matchAttribute"), ("distinct", "distinctAttribute")) if theme in themes
    ]
    if not kinds or dice.chance(0.3):
        return []
    single = ("model", "numa", "index", "healthy", "driverVersion")
    names = [f"{dice.pick((*DRIVERS, DRIVERS[0]))}/{name}" for name in (LISTS if "lists" in themes else single)]
    found: list[Document] = []
    for _ in range(dice.pick((1, 1, 2))):
        constraint: Document = {dice.pick(kinds): PCIE_ROOT if dice.chance(0.5) else dice.pick(names)}
        if dice.chance(0.7):
            constraint["requests"] = dice.some(refs, 1, 3)
        found.append(constraint)
    return found


def _config(dice: Dice, refs: Sequence[str], number: int) -> Document:
    config: Document = {"opaque": {"driver": dice.pick(DRIVERS), "parameters": {"of": number}}}
    return config | ({"requests": dice.some(refs, 1, 2)} if dice.chance(0.6) else {})


def allocated(dice: Dice, slices: Sequence[Document]) -> list[Document]:
    """Claims with devices of these slices, whole or shares, and sometimes of one that is gone."""
    owned = [
        (spec["driver"], spec["pool"]["name"], each)
        for spec in (document["spec"] for document in slices)
        for each in spec.get("devices", ())
    ]
    if not owned:
        return []
    results = [_result(dice, *found, number) for number, found in enumerate(dice.some(owned, 1, 4))]
    if dice.chance(0.1):
        results.append({"request": "r", "driver": DRIVERS[0], "pool": "gone", "device": "dev-0"})
    return [
        {
            "metadata": _metadata(f"busy-{number}", f"busy-{number}"),
            "spec": {"devices": {"requests": []}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
        for number, result in enumerate(results)
    ]


def _result(dice: Dice, driver: str, pool: str, of: Document, number: int) -> Document:
    result: Document = {"request": "r", "driver": driver, "pool": pool, "device": of["name"]}
    if dice.chance(0.1):
        return result | {"adminAccess": True}
    if of.get("allowMultipleAllocations") and dice.chance(0.9):
        amounts = {"memory": "1Gi", "bandwidth": "30"}
        result["shareID"] = SHARE.format(number)
        result["consumedCapacity"] = {name: amounts[name] for name in of.get("capacity", ())}
    return result
