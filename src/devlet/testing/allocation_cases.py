"""Small allocation problems written in few words, and what must come out: `tests/scenarios/alloc/*.yaml`.

A file is a list of cases. This one has two devices of driver `a` in pool `p1`, one of them held by another claim, and
a claim for one device of class `a`:

    - case: one-is-taken
      slices: [{pool: p1, devices: [d1, d2 memory:4Gi]}]
      allocated: [p1/d1]
      claims: [[r0 a]]
      fit: [r0 p1/d2]

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from devlet.objects.documents import Document

__all__ = ["Case", "Expected", "load"]

_POLICY = re.compile(r"(?P<value>[^()]+)(\((?P<policy>.*)\))?")
_REQUEST = re.compile(r"(?P<name>\S+)( (?P<mode>all|\d+|mode:\S+))?( (?P<class>[a-z][\w-]*|-))(?P<words>.*)", re.DOTALL)


@dataclass(frozen=True)
class Expected:
    """What comes out. `config` and `selectors` have one entry per claim; None: the case does not say."""

    outcome: str
    error: str = ""
    results: tuple[tuple[Document, ...], ...] = ()
    selectors: tuple[Document | None, ...] = ()
    config: tuple[tuple[Document, ...], ...] = ()


@dataclass(frozen=True)
class Case:
    name: str
    problem: Document
    expected: Expected
    improved: Expected | None = None
    improvement: str = ""
    search_calls: int | None = None
    features: Mapping[str, bool] = field(default_factory=dict)


def load(path: Path) -> list[Case]:
    """The cases of one file."""
    return [_case(document) for document in yaml.safe_load(path.read_text())]


def _case(short: Document) -> Case:
    problem = _problem(short)
    improved = short.get("improved")
    return Case(
        name=short["case"],
        problem=problem,
        expected=_expected(short, short),
        improved=_expected(improved, short) if improved else None,
        improvement=improved["because"] if improved else "",
        search_calls=short.get("searchCalls"),
        features=problem.get("features", {}),
    )


def _problem(short: Document) -> Document:
    problem = {
        "name": short["case"],
        "theme": "case",
        "nodes": [_node(short.get("node", "node-1 region=region-1"))],
        "classes": [_class(entry) for entry in short.get("classes", ["a", "b"])],
        "slices": _slices(short.get("slices", [])),
        "allocated": [_held(i, text) for i, text in enumerate(short.get("allocated", []))],
        "claims": [_claim(i, claim) for i, claim in enumerate(short.get("claims", []))],
    }
    if off := short.get("without"):
        problem["features"] = dict.fromkeys(off, False)
    return problem


def _node(text: str) -> Document:
    name, *labels = text.split()
    return {"metadata": {"name": name, "labels": {"planet": "earth"} | dict(label.split("=") for label in labels)}}


def _driver(short: str) -> str:
    return f"{short}.example.com"


def _place(text: str) -> tuple[str, str]:
    """Driver and the rest of `b/p1`; without a driver it is `a`."""
    driver, slash, rest = text.partition("/")
    return (_driver(driver), rest) if slash else (_driver("a"), text)


def _identity(text: str) -> Document:
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


def _claim_config(text: str) -> Document:
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
    return {"nodeSelector": _selector(text)} if "=" in text else {"nodeName": text}


def _selector(text: str) -> Document:
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
        _add_condition(device, word)
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


def _add_condition(holder: Document, word: str) -> None:
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
    result: Document = {"request": "r", **_identity(place)}
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
        devices["config"] = [_claim_config(text) for text in parts["config"]]
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
        request.setdefault("tolerations", []).append(_toleration(word[1:]))
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


def _toleration(text: str) -> Document:
    pair, _, effect = text.rpartition(":")
    key, equals, value = pair.partition("=")
    toleration = {"key": key, "operator": "Equal" if equals else "Exists", "value": value, "effect": effect}
    return {name: value for name, value in toleration.items() if value}


def _constraint(text: str) -> Document:
    if text == "nothing":
        return {}
    rule, _, requests = text.partition(" of ")
    kind, attribute = rule.split()
    driver, name = _place(attribute)
    constraint: Document = {f"{kind}Attribute": attribute if "." in attribute else f"{driver}/{name}"}
    return constraint | ({"requests": requests.split(",")} if requests else {})


# what comes out


def _expected(short: Document, case: Document) -> Expected:
    if "error" in short:
        return Expected("error", short["error"])
    if "fit" not in short:
        return Expected("no-fit", short.get("nodeError", ""))
    claims = _per_claim(short["fit"])
    return Expected(
        "fit",
        results=tuple(tuple(_result(text) for text in _spread(claim)) for claim in claims),
        selectors=_expected_selectors(short.get("selector", case.get("node", "node-1").split()[0]), len(claims)),
        config=tuple(tuple(_result_config(text) for text in claim) for claim in _per_claim(short.get("config", [])))
        or ((),) * len(claims),
    )


def _per_claim(entries: list[Any]) -> list[list[str]]:
    """A list of texts is for the only claim."""
    return entries if not entries or isinstance(entries[0], list) else [entries]


def _spread(texts: Iterable[str]) -> list[str]:
    """`r0 p1/d0..d3` is four results."""
    found = []
    for text in texts:
        if match := re.fullmatch(r"(.* \S+/d)(\d+)\.\.d(\d+)", text):
            found += [f"{match[1]}{i}" for i in range(int(match[2]), int(match[3]) + 1)]
        else:
            found.append(text)
    return found


def _result(text: str) -> Document:
    request, place, *words = text.split()
    result: Document = {"request": request, **_identity(place)}
    for word in words:
        if word == "admin":
            result["adminAccess"] = True
        elif word == "shared":
            result["shared"] = True
        elif word.startswith("~"):
            result.setdefault("tolerations", []).append(_toleration(word[1:]))
        elif word.startswith("?"):
            _add_condition(result, word)
        else:
            name, amount = word.split(":")
            result.setdefault("consumedCapacity", {})[name] = amount
    return result


def _expected_selectors(entry: str | list[str], claims: int) -> tuple[Document | None, ...]:
    texts = entry if isinstance(entry, list) else [entry] * claims
    return tuple(
        None if text == "all" else _selector(text if "=" in text else f"metadata.name={text}") for text in texts
    )


def _result_config(text: str) -> Document:
    source, pair = text.split(" ", 1)
    return {"source": "FromClass" if source == "class" else "FromClaim", **_claim_config(pair)}
