"""An allocation problem from few words.

Everything is words. `a` and `b` are drivers (`a.example.com`) and classes that select them; a pool, an attribute or a
configuration of another driver than `a` is written `b/p1`. Slices are for node-1 and pools complete unless said
otherwise; the node is node-1, with the labels region=region-1 and planet=earth.

    device      d1, then x=1 (attribute; x=v1.0.0 is a version, x=[1,2] a list, x= has no value),
                memory:8 or memory:8(default=2,min=2,step=2,max=4) or memory:8(values=1|2) (capacity),
                set1.memory-=4Gi (counters), shared, bindsToNode, !NoSchedule or !key=value:NoExecute (taints),
                ?Ready ?!Broken (binding and failure conditions), @node-2 @all @region=region-1 (for `at: devices`)
    request     r0 a, r0 2 a, r0 all a, {r0: [s0 b, s1 2 a]}; then admin, memory:2 (capacity), memory>=4Gi or
                kind=gpu (selectors), ~NoExecute or ~key=value:NoExecute (tolerations); after `if` all is CEL
    constraint  match x, distinct x of r0,r1/s0
    config      k=v, b/k=v for r0,r1
    result      r0/s1 p1/d2 admin shared memory:2 ~NoExecute ?Ready
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from devlet.objects.documents import Document

__all__ = ["add_condition", "claim_config", "identity", "problem", "selector", "toleration"]

_POLICY = re.compile(r"(?P<value>[^()]+)(\((?P<policy>.*)\))?")
_REQUEST = re.compile(r"(?P<name>\S+)( (?P<mode>all|\d+|mode:\S+))?( (?P<class>[a-z][\w-]*|-))(?P<words>.*)", re.DOTALL)


def problem(short: Document) -> Document:
    """The complete document."""
    document = {
        "name": short["case"],
        "theme": "case",
        "nodes": [_node(short.get("node", "node-1 region=region-1"))],
        "classes": [_class(entry) for entry in short.get("classes", ["a", "b"])],
        "slices": _slices(short.get("slices", [])),
        "allocated": [_held(i, text) for i, text in enumerate(short.get("allocated", []))],
        "claims": [_claim(i, claim) for i, claim in enumerate(short.get("claims", []))],
    }
    if off := short.get("without"):
        document["features"] = dict.fromkeys(off, False)
    return document


def _node(text: str) -> Document:
    name, *labels = text.split()
    return {"metadata": {"name": name, "labels": {"planet": "earth"} | dict(label.split("=") for label in labels)}}


def _driver(short: str) -> str:
    return f"{short}.example.com"


def _place(text: str) -> tuple[str, str]:
    """Driver and the rest of `b/p1`; without a driver it is `a`."""
    driver, slash, rest = text.partition("/")
    return (_driver(driver), rest) if slash else (_driver("a"), text)


def identity(text: str) -> Document:
    """`p1/d1` or `b/p1/d1`."""
    parts = text.split("/")
    driver, pool, device = parts if len(parts) == 3 else ("a", *parts)
    return {"driver": _driver(driver), "pool": pool, "device": device}


# classes and configuration


def _class(entry: str | Document) -> Document:
    text, more = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
    name, *words = text.split()
    expression = more.get("if", f'device.driver == "{_driver(name)}"')
    if words:
        expression += f" && device.allowMultipleAllocations == {str(words == ['shared']).lower()}"
    spec: Document = {"selectors": [_cel(expression)]}
    if config := more.get("config"):
        spec["config"] = [_opaque(text) for text in config]
    return {"metadata": {"name": name}, "spec": spec}


def _opaque(text: str) -> Document:
    driver, pair = _place(text)
    key, value = pair.split("=")
    return {"opaque": {"driver": driver, "parameters": {key: value}}}


def claim_config(text: str) -> Document:
    pair, _, requests = text.partition(" for ")
    return _opaque(pair) | ({"requests": requests.split(",")} if requests else {})


# slices and devices


def _slices(entries: list[Document]) -> list[Document]:
    sizes = Counter((entry["pool"], entry.get("generation", 1)) for entry in entries)
    return [_slice(i, entry, sizes) for i, entry in enumerate(entries, 1)]


def _slice(index: int, entry: Document, sizes: Counter[tuple[str, int]]) -> Document:
    driver, pool = _place(entry["pool"])
    generation = entry.get("generation", 1)
    count = entry.get("of", sizes[entry["pool"], generation])
    spec: Document = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        **_where(entry.get("at", "node-1")),
    }
    if counters := entry.get("counters"):
        spec["sharedCounters"] = [{"name": name, "counters": _values(set_)} for name, set_ in counters.items()]
    devices = entry.get("devices", [])
    if isinstance(devices, int):
        devices = [f"d{i}" for i in range(devices)]
    if devices:
        spec["devices"] = [_device(text) for text in devices]
    return {"metadata": {"name": entry.get("name", f"slice-{index}")}, "spec": spec}


def _where(text: str) -> Document:
    if text == "all":
        return {"allNodes": True}
    if text == "devices":
        return {"perDeviceNodeSelection": True}
    return {"nodeSelector": selector(text)} if "=" in text else {"nodeName": text}


def selector(text: str) -> Document:
    """`region=region-1,region-2`; requirements are joined with `&`, terms with `|`."""
    return {"nodeSelectorTerms": [_term(term.split("&")) for term in text.split("|")]}


def _term(requirements: list[str]) -> Document:
    term: dict[str, list[Document]] = {}
    for requirement in requirements:
        key, values = requirement.split("=")
        kind = "matchFields" if key == "metadata.name" else "matchExpressions"
        term.setdefault(kind, []).append({"key": key, "operator": "In", "values": values.split(",")})
    return term


def _values(amounts: Mapping[str, object]) -> Document:
    return {name: {"value": str(amount)} for name, amount in (amounts or {}).items()}


def _device(text: str) -> Document:
    name, *words = text.split()
    device: Document = {"name": name}
    for word in words:
        _add_device_word(device, word)
    return device


def _add_device_word(device: Document, word: str) -> None:
    if word == "shared":
        device["allowMultipleAllocations"] = True
    elif word == "bindsToNode":
        device["bindsToNode"] = True
    elif word.startswith("!"):
        device.setdefault("taints", []).append(_taint(word[1:]))
    elif word.startswith("?"):
        add_condition(device, word)
    elif word.startswith("@"):
        device.update(_where(word[1:]))
    elif "-=" in word:
        _add_consumption(device.setdefault("consumesCounters", []), word)
    elif match := re.fullmatch(r"([\w./-]+):(.+)", word):
        device.setdefault("capacity", {})[match[1]] = _capacity(match[2])
    else:
        key, _, value = word.partition("=")
        device.setdefault("attributes", {})[key] = _attribute(value)


def _taint(text: str) -> Document:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key or "broken", "value": value or "yes", "effect": effect}


def add_condition(holder: Document, word: str) -> None:
    key, name = ("bindingFailureConditions", word[2:]) if word[1] == "!" else ("bindingConditions", word[1:])
    holder.setdefault(key, []).append(name)


def _add_consumption(consumed: list[Document], word: str) -> None:
    counter, amount = word.split("-=")
    set_, _, name = counter.partition(".")
    entry = next((entry for entry in consumed if entry["counterSet"] == set_), None)
    if not entry:
        entry = {"counterSet": set_, "counters": {}}
        consumed.append(entry)
    if name:
        entry["counters"][name] = {"value": amount}


def _capacity(text: str) -> Document:
    match = _POLICY.fullmatch(text)
    assert match, f"{text!r} is no capacity"
    if not match["policy"]:
        return {"value": match["value"]}
    policy: Document = {}
    for part in match["policy"].split(","):
        key, _, value = part.partition("=")
        if key == "values":
            policy["validValues"] = value.split("|")
        elif key == "default":
            policy["default"] = value
        else:
            policy.setdefault("validRange", {})[key] = value
    return {"value": match["value"], "requestPolicy": policy}


def _attribute(text: str) -> Document:
    if not text:
        return {}
    if text.startswith("["):
        items = [_scalar(item) for item in text[1:-1].split(",") if item]
        kind = next(iter(items[0])) if items else "string"
        return {f"{kind}s": [item[kind] for item in items]}
    return _scalar(text)


def _scalar(text: str) -> Document:
    if text in ("true", "false"):
        return {"bool": text == "true"}
    if re.fullmatch(r"-?\d+", text):
        return {"int": int(text)}
    if re.fullmatch(r"v\d+\.\d+\.\d+", text):
        return {"version": text[1:]}
    return {"string": text.strip("'")}


# claims


def _held(index: int, text: str) -> Document:
    """Of another claim: `p1/d1`, or a share of it: `p1/d1 shared memory:2`."""
    place, *words = text.split()
    result: Document = {"request": "r", **identity(place)}
    if "shared" in words:
        result["shareID"] = f"00000000-0000-4000-8000-{index:012}"
    if consumed := dict(word.split(":") for word in words if ":" in word):
        result["consumedCapacity"] = consumed
    if "admin" in words:
        result["adminAccess"] = True
    return {
        "metadata": {"name": f"held-{index}", "namespace": "default", "uid": f"held-{index}"},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


def _claim(index: int, short: list[Any] | Document) -> Document:
    parts: Document = {"requests": short} if isinstance(short, list) else short
    devices: Document = {"requests": [_request(entry) for entry in parts["requests"]]}
    if "constraints" in parts:
        devices["constraints"] = [_constraint(text) for text in parts["constraints"]]
    if "config" in parts:
        devices["config"] = [claim_config(text) for text in parts["config"]]
    return {
        "metadata": {"name": f"claim-{index}", "namespace": "default", "uid": f"claim-{index}"},
        "spec": {"devices": devices},
    }


def _request(entry: str | Document) -> Document:
    if isinstance(entry, dict):
        ((name, alternatives),) = entry.items()
        return {"name": name, "firstAvailable": [_named(text) for text in alternatives]}
    request = _named(entry)
    return {"name": request.pop("name"), "exactly": request}


def _named(text: str) -> Document:
    """A request with its name, as alternatives are written."""
    text, _, expression = text.partition(" if ")
    match = _REQUEST.fullmatch(text)
    assert match, f"{text!r} is no request"
    class_ = "" if match["class"] == "-" else match["class"]
    request: Document = {"name": match["name"], "deviceClassName": class_, **_mode(match["mode"] or "1")}
    driver = _driver(class_ or "a")
    for word in match["words"].split():
        _add_request_word(request, word, driver)
    if expression:
        request.setdefault("selectors", []).append({} if expression == "nothing" else _cel(expression))
    return request


def _mode(text: str) -> Document:
    if text == "all":
        return {"allocationMode": "All"}
    if text.startswith("mode:"):
        return {"allocationMode": text[5:], "count": 1}
    return {"allocationMode": "ExactCount", "count": int(text)}


def _add_request_word(request: Document, word: str, driver: str) -> None:
    if word == "admin":
        request["adminAccess"] = True
    elif word.startswith("~"):
        request.setdefault("tolerations", []).append(toleration(word[1:]))
    elif ">=" in word:
        name, amount = word.split(">=")
        expression = f'device.capacity["{driver}"]["{name}"].compareTo(quantity("{amount}")) >= 0'
        request.setdefault("selectors", []).append(_cel(expression))
    elif "=" in word:
        name, value = word.split("=")
        literal = value if value in ("true", "false") or value.isdigit() else f'"{value}"'
        request.setdefault("selectors", []).append(_cel(f'device.attributes["{driver}"].{name} == {literal}'))
    else:
        name, amount = word.split(":")
        request.setdefault("capacity", {"requests": {}})["requests"][name] = amount


def _cel(expression: str) -> Document:
    return {"cel": {"expression": expression}}


def toleration(text: str) -> Document:
    pair, _, effect = text.rpartition(":")
    key, equals, value = pair.partition("=")
    parts = {"key": key, "operator": "Equal" if equals else "Exists", "value": value, "effect": effect}
    return {name: value for name, value in parts.items() if value}


def _constraint(text: str) -> Document:
    if text == "nothing":
        return {}
    rule, _, requests = text.partition(" of ")
    kind, attribute = rule.split()
    driver, name = _place(attribute)
    constraint: Document = {f"{kind}Attribute": attribute if "." in attribute else f"{driver}/{name}"}
    return constraint | ({"requests": requests.split(",")} if requests else {})
