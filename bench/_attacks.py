"""Requests of at most 3 MB that cost a server as much as a client can make them cost. Used by bench/requests.py."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from devlet.objects import kube_protobuf

LIMIT = 3 << 20
BIG = LIMIT - 4096  # bytes, with room for what is around

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/attack.example.com/v1/namespaces/default/widgets"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON


@dataclass(frozen=True)
class Attack:
    """`before` prepares what `request` needs, `after` asks for what it left behind; `codes` are the right answers."""

    name: str
    make: Callable[[], Request]
    codes: tuple[int, ...] = (200, 201)
    before: tuple[Callable[[], Request], ...] = ()
    after: tuple[Request, ...] = ()
    remove: tuple[str, ...] = field(default=())


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _map(data: Any = None, **metadata: Any) -> dict[str, Any]:
    document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "attack", **metadata}}
    return document if data is None else {**document, "data": data}


def _post(path: str, body: Any, content_type: str = JSON, accept: str = JSON) -> Request:
    return Request("POST", path, body if isinstance(body, bytes) else _json(body), content_type, accept)


_YAML_HEAD = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: attack}\n"


def _yaml(rest: bytes) -> Request:
    return _post(MAPS, _YAML_HEAD + rest, YAML)


def _yaml_of(piece: str, count: int) -> Callable[[], Request]:
    return lambda: _yaml("".join(piece.format(i=i) for i in range(count)).encode()[:BIG].rpartition(b"\n")[0])


def _keys(count: int) -> dict[str, str]:
    return {f"k{i}": "" for i in range(count)}


def _in_map(path: str, value: Callable[[], Any]) -> Callable[[], Request]:
    def make() -> Request:
        return _post(MAPS, _map(**{path: value()}))

    return make


def _patch(content_type: str, value: Callable[[], Any]) -> Callable[[], Request]:
    return lambda: Request("PATCH", f"{MAPS}/attack", _json(value()), content_type)


def _apply(manager: str, value: Callable[[], Any], path: str = f"{MAPS}/attack") -> Callable[[], Request]:
    return lambda: Request("PATCH", f"{path}?fieldManager={manager}&force=true", _json(value()), APPLY_PATCH)


def _long_list() -> Request:
    return _post(WIDGETS, {**_widget(), "spec": {"list": list(range(150_000))}})


def _widget(**spec: Any) -> dict[str, Any]:
    return {"kind": "Widget", "apiVersion": "attack.example.com/v1", "metadata": {"name": "attack"}, "spec": spec}


def definition(properties: dict[str, Any] | None = None) -> dict[str, Any]:
    """Of widgets, which take any spec, and have more properties if wanted."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "properties": properties or {}},
        },
    }
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.attack.example.com"},
        "spec": {
            "group": "attack.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


_DEFINITION = f"{DEFINITIONS}/widgets.attack.example.com"


def _class(*expressions: str) -> dict[str, Any]:
    return {
        "kind": "DeviceClass",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "attack"},
        "spec": {"selectors": [{"cel": {"expression": text}} for text in expressions]},
    }


def selector(name: str, *expressions: str, codes: tuple[int, ...] = (201, 422)) -> Attack:
    return Attack(name, lambda: _post(CLASSES, _class(*expressions)), codes, remove=(f"{CLASSES}/attack",))


def claim_of(expressions: Callable[[int, int], str], requests: int = 32, selectors: int = 32) -> dict[str, Any]:
    return {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "attack"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": f"r{i}",
                        "exactly": {
                            "deviceClassName": "attack",
                            "selectors": [{"cel": {"expression": expressions(i, j)}} for j in range(selectors)],
                        },
                    }
                    for i in range(requests)
                ]
            }
        },
    }


def _claim(name: str, expressions: Callable[[int, int], str], selectors: int = 32) -> Attack:
    def make() -> Request:
        return _post(CLAIMS, claim_of(expressions, selectors=selectors))

    return Attack(name, make, (201, 413, 422), remove=(f"{CLAIMS}/attack",))


def _chain(i: int, j: int, size: int = 2500) -> str:
    text = f"{i} != {j} + 100"
    while len(text) < size:
        text += f' || device.driver == "{i}.{j}.{len(text)}"'
    return text


def _pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "attack"},
        "spec": {"containers": [container], **spec},
    }


def _containers(count: int) -> list[dict[str, Any]]:
    limits = {"cpu": "1m", "memory": "1Ki"}
    return [{"name": f"c{i}", "image": "x", "resources": {"requests": limits}} for i in range(count)]


def _slice(devices: int) -> dict[str, Any]:
    attributes = {f"a{i}": {"string": f"value-{i}"} for i in range(32)}
    return {
        "kind": "ResourceSlice",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "attack"},
        "spec": {
            "driver": "gpu.example.com",
            "allNodes": True,
            "pool": {"name": "attack", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{i}", "attributes": attributes} for i in range(devices)],
        },
    }


def _protobuf(document: dict[str, Any], path: str) -> Request:
    return _post(path, kube_protobuf.encode(document), PROTOBUF)


def _nested_groups() -> Request:
    """A CRD's schema nested as protobuf: JSONSchemaProps in JSONSchemaProps; here a raw message of unknown fields."""
    inner = b"\x0a\x00" * (BIG // 2)
    envelope = b"\x0a\x0f" + b"\x0a\x02v1" + b"\x12\x09ConfigMap"
    length = len(inner)
    varint = b""
    while length > 127:
        varint += bytes([length & 127 | 128])
        length >>= 7
    return _post(MAPS, b"k8s\0" + envelope + b"\x12" + varint + bytes([length]) + inner, PROTOBUF)


def _list_patch(operations: list[dict[str, Any]]) -> Callable[[], Request]:
    return lambda: Request("PATCH", f"{WIDGETS}/attack", _json(operations), JSON_PATCH)


_WIDGET_BEFORE = (lambda: _post(DEFINITIONS, definition()), _long_list)
_WIDGET_AFTER = (f"{WIDGETS}/attack", _DEFINITION)
_MAP = (f"{MAPS}/attack",)


def attacks() -> Iterator[Attack]:
    yield from _yaml_attacks()
    yield from _json_attacks()
    yield from _metadata_attacks()
    yield from _patch_attacks()
    yield from _cel_attacks()
    yield from _kind_attacks()
    yield from _query_attacks()


def _yaml_attacks() -> Iterator[Attack]:
    def of(name: str, rest: Callable[[], bytes], codes: tuple[int, ...] = (201, 400, 413, 422)) -> Attack:
        return Attack(f"YAML: {name}", lambda: _yaml(rest()[:BIG]), codes, remove=_MAP)

    yield of("integer with colons, 1.2 MB", lambda: b"a: 1" + b":1" * 600_000)
    yield of("float with colons, 1.2 MB", lambda: b"a: 1" + b":1" * 600_000 + b".5")
    yield of("integer of 3 MB", lambda: b"a: " + b"7" * BIG)
    yield of("hexadecimal integer of 3 MB", lambda: b"a: 0x" + b"7" * BIG)
    yield of("200,000 keys", lambda: b"data:\n" + b"".join(b"  k%d: ''\n" % i for i in range(200_000)))
    yield of("400,000 one-line keys", lambda: b"data: {" + b",".join(b"k%d: " % i for i in range(300_000)) + b"}")
    yield of("list of short scalars", lambda: b"list: [" + b"1," * (BIG // 2 - 50) + b"1]")
    yield of("block list of short scalars", lambda: b"list:\n" + b"- 1\n" * (BIG // 4 - 50))
    yield of("nested to the limit", lambda: b"list:\n" + (b"- " + b"[" * 97 + b"]" * 97 + b"\n") * 15_000)
    yield of("200,000 nested lists", lambda: b"list:\n" + (b"- " + b"[" * 97 + b"]" * 97 + b"\n") * 2_000)
    yield of("nested too deeply", lambda: b"list: " + b"[" * (BIG // 2) + b"]" * (BIG // 2))
    yield of("merge keys", lambda: b"a: {" + b"<<: {a: 1}," * 200_000 + b"b: 1}")
    yield of("nested merge keys", lambda: b"a:\n" + (b"- " + b"{<<: [" * 40 + b"{a: 1}" + b"]}" * 40 + b"\n") * 7000)
    yield of("aliases", lambda: b"a: &a [1]\nb: [" + b"*a," * 900_000 + b"*a]")
    yield of("anchors", lambda: b"list:\n" + b"".join(b"- &a%d 1\n" % i for i in range(250_000)))
    yield of("tags", lambda: b"list:\n" + b"- !!python/object:a {}\n" * 100_000)
    yield of("sets", lambda: b"a: !!set {" + b"".join(b"? k%d," % i for i in range(200_000)) + b"}")
    yield of("ordered mappings", lambda: b"a: !!omap [" + b"{a: 1}," * 300_000 + b"]")
    yield of("binary", lambda: b"a: !!binary " + b"A" * (BIG - 200))
    yield of("duplicate keys", lambda: b"data:\n" + b"  k: ''\n" * 300_000)
    yield of("text of escapes", lambda: b'a: "' + b"\\x41" * (BIG // 4 - 50) + b'"')
    yield of("flow text with line ends", lambda: b"a: '" + b"a\n\n" * (BIG // 3 - 50) + b"'")
    yield of("long plain text with spaces", lambda: b"a: " + b"a " * (BIG // 2 - 50))
    yield of("comments", lambda: b"#a\n" * (BIG // 3 - 50))
    yield of("documents", lambda: b"---\n" * (BIG // 4 - 50))
    yield of("keys that are lists", lambda: b"a:\n" + b"? [1, 2]\n: 1\n" * 200_000)


def _json_attacks() -> Iterator[Attack]:
    def of(name: str, body: Callable[[], bytes], codes: tuple[int, ...] = (201, 400, 413, 422)) -> Attack:
        return Attack(f"JSON: {name}", lambda: _post(MAPS, body()), codes, remove=_MAP)

    head = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"attack"},'
    yield of("200,000 keys", lambda: _json(_map(_keys(200_000))))
    yield of("100,000 keys", lambda: _json(_map(_keys(100_000))))
    yield of("one value of 3 MB", lambda: _json(_map({"k": "x" * (BIG - 100)})))
    yield of("value of 3 MB of escapes", lambda: head + b'"data":{"k":"' + b"\\u0041" * (BIG // 6 - 50) + b'"}}')
    yield of("duplicate keys", lambda: head + b'"data":{' + b'"k":"",' * (BIG // 7 - 50) + b'"k":""}}')
    yield of("unknown fields", lambda: head + b",".join(b'"f%d":1' % i for i in range(250_000)) + b"}")
    yield of("200,000 nested lists", lambda: head + b'"x":[' + (b"[" * 97 + b"]" * 97 + b",") * 2_000 + b"1]}")
    yield of("nested to the limit", lambda: head + b'"x":[' + (b"[" * 97 + b"]" * 97 + b",") * 15_000 + b"1]}")
    yield of("nested too deeply", lambda: head + b'"x":' + b"[" * (BIG // 2 - 100) + b"]" * (BIG // 2 - 100) + b"}")
    yield of("empty lists", lambda: head + b'"x":[' + b"[]," * (BIG // 3 - 100) + b"1]}")
    yield of("empty objects, spaced", lambda: head + b'"x": [' + b"{}," * (BIG // 3 - 100) + b"1]}")
    yield of("integer of 3 MB", lambda: head + b'"x":' + b"7" * (BIG - 200) + b"}")
    yield of("floats", lambda: head + b'"x":[' + b"1.5e300," * (BIG // 8 - 50) + b"1]}")
    yield of("float of 3 MB", lambda: head + b'"x":0.' + b"7" * (BIG - 200) + b"}")
    yield of("spaces", lambda: head + b" " * (BIG - 200) + b'"data":{}}')
    yield Attack(
        "JSON: custom resource with 100,000 keys",
        lambda: _post(WIDGETS, _widget(**_keys(100_000))),
        before=_WIDGET_BEFORE[:1],
        remove=_WIDGET_AFTER,
    )
    yield Attack(
        "JSON: custom resource of 200,000 lists, answered as YAML",
        lambda: _post(WIDGETS, _widget(x=[[] for _ in range(200_000)]), accept=YAML),
        before=_WIDGET_BEFORE[:1],
        remove=_WIDGET_AFTER,
    )
    yield Attack(
        "protobuf: config map with 200,000 keys",
        lambda: _protobuf(_map(_keys(200_000)), MAPS),
        (201, 413, 422),
        remove=_MAP,
    )
    yield Attack("protobuf: 1,500,000 small fields", _nested_groups, (201, 400, 422), remove=_MAP)
    yield Attack(
        "protobuf: pod with 40,000 containers",
        lambda: _protobuf(_pod(containers=_containers(40_000), schedulingGates=[{"name": "a"}]), PODS),
        (201, 413, 422),
        remove=(f"{PODS}/attack",),
    )


def _metadata_attacks() -> Iterator[Attack]:
    def of(name: str, key: str, value: Callable[[], Any]) -> Attack:
        return Attack(f"metadata: {name}", _in_map(key, value), (201, 400, 413, 422), remove=_MAP)

    yield of("labels", "labels", lambda: {f"k{i}": "v" for i in range(100_000)})
    yield of("wrong labels", "labels", lambda: {f"k {i}": "-" for i in range(180_000)})
    yield of("annotations", "annotations", lambda: {f"k{i}": "v" for i in range(200_000)})
    yield of("1,000 finalizers", "finalizers", lambda: [f"example.com/f{i}" for i in range(1_000)])
    yield of("finalizers", "finalizers", lambda: [f"example.com/f{i}" for i in range(55_000)])
    yield of("wrong finalizers", "finalizers", lambda: [f"f{i}" for i in range(250_000)])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    yield of(
        "1,000 owners", "ownerReferences", lambda: [{**owner, "uid": f"{i}", "controller": True} for i in range(1000)]
    )
    yield of("owners", "ownerReferences", lambda: [{**owner, "uid": f"{i}"} for i in range(35_000)])
    fields = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    yield of(
        "managed fields",
        "managedFields",
        lambda: [{**fields, "fieldsV1": {"f:data": {f"f:k{i}": {} for i in range(180_000)}}}],
    )
    yield of(
        "many managers",
        "managedFields",
        lambda: [{**fields, "manager": f"m{i}", "fieldsV1": {"f:data": {f"f:k{i}": {}}}} for i in range(20_000)],
    )


def _patch_attacks() -> Iterator[Attack]:
    moves = [{"op": "move", "from": "/spec/list/149999", "path": "/spec/list/0"}] * 10_000
    yield Attack("JSON patch: 10,000 moves in a list", _list_patch(moves), before=_WIDGET_BEFORE, remove=_WIDGET_AFTER)
    tests = [{"op": "test", "path": "/spec/list/0", "value": 0}] * 10_000
    yield Attack("JSON patch: 10,000 tests", _list_patch(tests), before=_WIDGET_BEFORE, remove=_WIDGET_AFTER)
    whole = [{"op": "copy", "from": "/spec/list", "path": "/spec/copy"}] * 10_000
    yield Attack(
        "JSON patch: 10,000 copies", _list_patch(whole), (200, 413, 422), before=_WIDGET_BEFORE, remove=_WIDGET_AFTER
    )
    value = [{"op": "test", "path": "/spec", "value": {"list": list(range(149_999)) + [0]}}]
    yield Attack("JSON patch: one large test", _list_patch(value), (422,), before=_WIDGET_BEFORE, remove=_WIDGET_AFTER)
    path = "/spec/" + "a/" * 140
    yield Attack(
        "JSON patch: long paths",
        _list_patch([{"op": "remove", "path": path}] * 10_000),
        (422,),
        before=_WIDGET_BEFORE,
        remove=_WIDGET_AFTER,
    )
    yield Attack(
        "merge patch: 200,000 keys",
        _patch(MERGE_PATCH, lambda: {"data": _keys(200_000)}),
        (200, 413, 422),
        before=(lambda: _post(MAPS, _map(_keys(100_000))),),
        remove=_MAP,
    )
    gated = {"schedulingGates": [{"name": "a"}]}
    env = [{"name": f"E{i}", "value": "v"} for i in range(30_000)]
    yield Attack(
        "strategic merge patch: variables of a pod",
        lambda: Request(
            "PATCH",
            f"{PODS}/attack",
            _json({"spec": {"containers": [{"name": "c", "env": env[::-1]}]}}),
            STRATEGIC_PATCH,
        ),
        (200, 413, 422),
        before=(lambda: _post(PODS, _pod(containers=[{"name": "c", "image": "x", "env": env}], **gated)),),
        remove=(f"{PODS}/attack",),
    )
    order = [f"example.com/f{i}" for i in range(1_000)]
    yield Attack(
        "strategic merge patch: order of finalizers",
        lambda: Request(
            "PATCH",
            f"{MAPS}/attack",
            _json({"metadata": {"$setElementOrder/finalizers": order[::-1], "finalizers": order[::-1]}}),
            STRATEGIC_PATCH,
        ),
        (200, 413, 422),
        before=(lambda: _post(MAPS, _map(finalizers=order)),),
    )
    yield Attack(
        "strategic merge patch: deletions from a list",
        lambda: Request(
            "PATCH",
            f"{MAPS}/attack",
            _json({"metadata": {"$deleteFromPrimitiveList/finalizers": order[::-1] * 100}}),
            STRATEGIC_PATCH,
        ),
        (200, 413, 422),
        remove=_MAP,
    )

    def applied() -> dict[str, Any]:
        return _map(_keys(100_000))

    yield Attack("apply: 100,000 fields", _apply("a", applied), (200, 201, 413, 422))
    for i in range(3):
        yield Attack(f"apply: 100,000 fields, manager {i + 2}", _apply(f"m{i}", applied), (200, 201, 413, 422))
    yield Attack(
        "apply: none of 100,000 fields", _apply("a", lambda: _map({"z": "1"})), (200, 201, 413, 422), remove=_MAP
    )
    yield Attack(
        "apply: 110,000 small fields of a widget",
        _apply("a", lambda: _widget(**{f"{i}": 1 for i in range(110_000)}), f"{WIDGETS}/attack"),
        (200, 201, 413, 422),
        before=_WIDGET_BEFORE,
        remove=_WIDGET_AFTER,
    )
    yield Attack(
        "apply: YAML, 200,000 keys",
        lambda: Request(
            "PATCH",
            f"{MAPS}/attack?fieldManager=a",
            _YAML_HEAD + b"data:\n" + b"".join(b"  k%d: ''\n" % i for i in range(200_000)),
            APPLY_PATCH,
        ),
        (200, 201, 413, 422),
        remove=_MAP,
    )


def _cel_attacks() -> Iterator[Attack]:
    matches = 'device.driver.matches("{}")'
    yield selector("CEL: \\pL{900}", matches.format(r"\\pL{900}"))
    yield selector("CEL: nested repeats", matches.format("((a{100}){10}){1}" + "(b{100}){10}" * 30))
    yield selector("CEL: nested repeats, beyond RE2's", matches.format("((a{100}){100}){10}"))
    yield selector("CEL: alternatives", matches.format("|".join(f"\\\\pL{i}" for i in range(1000))))
    yield selector("CEL: 32 selectors with classes", *(matches.format(rf"\\pL{{{900 - i}}}") for i in range(32)))
    yield selector(
        "CEL: patterns of constants",
        " && ".join(rf'device.driver.matches("\\pL{{{900 - i}}}" + "a")' for i in range(200)),
    )
    yield selector("CEL: many patterns", " && ".join(rf'"".matches("\\pL{{{999 - i}}}")' for i in range(300)))
    yield selector("CEL: ternaries", "true ? true : " * 700 + "true")
    yield selector("CEL: nested ternaries", "(true ? " * 600 + "true" + " : false)" * 600)
    yield selector("CEL: long list", "1 in [" + "1," * 5000 + "1]")
    yield selector("CEL: long map", "1 in {" + ",".join(f"{i}: 1" for i in range(1200)) + "}")
    yield selector("CEL: long list of maps", "[" + "{1:1}," * 1600 + "{}].size() > 1")
    yield selector("CEL: long chain", " || ".join(["true"] * 1200))
    yield selector("CEL: chain of attributes", " || ".join(f'device.attributes["a"].b{i} == 1' for i in range(280)))
    yield selector("CEL: brackets", "(" * 4000 + "true" + ")" * 4000)
    yield selector("CEL: negations", "!" * 10_000 + "true")
    yield selector("CEL: macros", "[1]" + "".join(f".map(x{i}, x{i})" for i in range(500)) + " == [1]")
    yield selector("CEL: nested macros", "".join(f"[1].all(x{i}, " for i in range(200)) + "true" + ")" * 200)
    yield selector("CEL: types that double", "[1]" + ".map(x, {x: x})" * 400 + " == [1]")
    yield selector("CEL: errors", "% " * 5000)
    yield selector("CEL: binds", "".join(f"cel.bind(x{i}, [1, 2, 3], " for i in range(300)) + "true" + ")" * 300)
    yield selector("CEL: unknown names", " || ".join(f"foo{i}" for i in range(900)))
    yield _claim("CEL: claim of 1,024 selectors", _chain)
    yield _claim("CEL: claim of 64 selectors", _chain, 2)
    yield _claim("CEL: claim of 1,024 patterns", lambda i, j: rf'device.driver.matches("\\pL{{{999 - i}}}|{j}")')
    yield _claim("CEL: claim of 256 long selectors", lambda i, j: _chain(i, j, 10_000), 8)
    yield _claim("CEL: claim of 256 lists", lambda i, j: f"{i + j * 100} in [" + "1," * 5000 + "1]", 8)
    yield Attack(
        "CEL: claim on a slice of 128 devices, 32 loops",
        lambda: _post(
            CLAIMS,
            claim_of(
                lambda i, j: (
                    f"[{i}].all(x, device.driver.matches('g.u{j}[a-z]+{i}') || [1,2,3,4,5,6,7,8].all(y, [1,2,3,4,5,6,7,8].all(z, y + z + x < 1000)))"
                ),
                1,
            ),
        ),
        (201,),
        before=(lambda: _post(SLICES, _slice(128)), lambda: _post(CLASSES, _class("true"))),
        remove=(f"{CLAIMS}/attack", f"{CLASSES}/attack", f"{SLICES}/attack"),
    )


def _kind_attacks() -> Iterator[Attack]:
    yield Attack("slice of 128 devices", lambda: _post(SLICES, _slice(128)), (201, 422), remove=(f"{SLICES}/attack",))
    yield Attack(
        "slice of 3,000 devices", lambda: _post(SLICES, _slice(2500)), (413, 422), remove=(f"{SLICES}/attack",)
    )
    gated = {"schedulingGates": [{"name": "a"}]}
    pod = (f"{PODS}/attack",)
    yield Attack(
        "pod with 7,000 containers, gated",
        lambda: _post(PODS, _pod(containers=_containers(7_000), **gated)),
        (201, 413, 422),
        remove=pod,
    )
    yield Attack(
        "pod with 7,000 containers",
        lambda: _post(PODS, _pod(containers=_containers(7_000))),
        (201, 413, 422),
        remove=pod,
    )
    env = [{"name": f"E{i}", "value": f"$(E{i - 1})"} for i in range(30_000)]
    yield Attack(
        "pod with 30,000 variables",
        lambda: _post(PODS, _pod(containers=[{"name": "c", "image": "x", "env": env}])),
        (201, 413, 422),
        remove=pod,
    )
    yield Attack(
        "pod with 30,000 volumes",
        lambda: _post(PODS, _pod(volumes=[{"name": f"v{i}", "emptyDir": {}} for i in range(30_000)])),
        (201, 413, 422),
        remove=pod,
    )
    yield Attack(
        "pod with 60,000 tolerations",
        lambda: _post(PODS, _pod(tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(60_000)])),
        (201, 413, 422),
        remove=pod,
    )
    yield Attack(
        "pod with 25,000 claims",
        lambda: _post(PODS, _pod(resourceClaims=[{"name": f"c{i}", "resourceClaimName": "x"} for i in range(25_000)])),
        (201, 413, 422),
        remove=pod,
    )
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}] * 40_000
            }
        }
    }
    yield Attack(
        "pod with 40,000 node selector terms", lambda: _post(PODS, _pod(affinity=affinity)), (201, 413, 422), remove=pod
    )
    yield Attack(
        "pod with 15,000 ports",
        lambda: _post(
            PODS,
            _pod(
                containers=[
                    {
                        "name": "c",
                        "image": "x",
                        "ports": [{"containerPort": i % 60_000 + 1, "hostPort": i % 60_000 + 1} for i in range(15_000)],
                    }
                ]
            ),
        ),
        (201, 413, 422),
        remove=pod,
    )
    rules = [{"apiGroups": [f"g{i}"], "resources": ["r"], "verbs": ["get"]} for i in range(45_000)]
    role = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "attack"}}
    binding = {
        "kind": "ClusterRoleBinding",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "attack"},
        "roleRef": {"kind": "ClusterRole", "name": "attack", "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    bindings = ROLES.replace("clusterroles", "clusterrolebindings")
    review = _post(
        REVIEWS.replace("subjectaccessreviews", "selfsubjectrulesreviews"),
        {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": "default"}},
    )
    yield Attack(
        "role of 45,000 rules, bound",
        lambda: _post(ROLES, {**role, "rules": rules}),
        (413, 422),
        before=(lambda: _post(bindings, binding),),
        after=(review, Request("GET", f"{MAPS}?limit=1")),
        remove=(f"{ROLES}/attack", f"{bindings}/attack"),
    )
    yield Attack(
        "role of 6,000 rules, bound",
        lambda: _post(ROLES, {**role, "rules": rules[:6000]}),
        (201,),
        before=(lambda: _post(bindings, binding),),
        after=(review, Request("GET", f"{MAPS}?limit=1")),
        remove=(f"{ROLES}/attack", f"{bindings}/attack"),
    )
    subjects = [{"kind": "User", "name": f"u{i}", "apiGroup": "rbac.authorization.k8s.io"} for i in range(40_000)]
    yield Attack(
        "binding of 40,000 subjects",
        lambda: _post(bindings, {**binding, "subjects": subjects}),
        (201, 413),
        after=(Request("GET", f"{MAPS}?limit=1"),),
        remove=(f"{bindings}/attack",),
    )
    properties = {f"p{i}": {"type": "string", "description": "x"} for i in range(60_000)}
    views = (
        Request("GET", "/openapi/v2"),
        Request("GET", "/openapi/v3"),
        Request("GET", "/openapi/v3/apis/attack.example.com/v1"),
        Request("GET", "/openapi/v2", accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
    )
    yield Attack(
        "CRD of 60,000 properties",
        lambda: _post(DEFINITIONS, definition(properties)),
        (201, 413, 422),
        after=views,
        remove=(_DEFINITION,),
    )
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        deep = {"type": "object", "properties": {"a": deep}}
    wide = {f"p{i}": deep for i in range(3000)}
    yield Attack(
        "CRD of 3,000 deep properties",
        lambda: _post(DEFINITIONS, definition(wide)),
        (201, 413, 422),
        after=views,
        remove=(_DEFINITION,),
    )
    yield Attack(
        "review of 3 MB",
        lambda: _post(
            REVIEWS,
            {
                "kind": "SubjectAccessReview",
                "apiVersion": "authorization.k8s.io/v1",
                "spec": {
                    "user": "a",
                    "groups": [f"g{i}" for i in range(250_000)],
                    "resourceAttributes": {"verb": "get", "resource": "pods"},
                },
            },
        ),
        (201, 400),
    )
    yield Attack(
        "review with 100,000 extras",
        lambda: _post(
            REVIEWS,
            {
                "kind": "SubjectAccessReview",
                "apiVersion": "authorization.k8s.io/v1",
                "spec": {
                    "user": "a",
                    "extra": {f"e{i}": ["a"] for i in range(150_000)},
                    "resourceAttributes": {"verb": "get", "resource": "pods"},
                },
            },
        ),
        (201, 400),
    )
    yield Attack(
        "token request of 3 MB",
        lambda: _post(
            TOKEN,
            {
                "kind": "TokenRequest",
                "apiVersion": "authentication.k8s.io/v1",
                "spec": {"audiences": [f"a{i}" for i in range(250_000)]},
            },
        ),
        (422,),
    )
    yield Attack(
        "token review of 3 MB",
        lambda: _post(
            REVIEWS.replace("authorization", "authentication").replace("subjectaccessreviews", "tokenreviews"),
            {
                "kind": "TokenReview",
                "apiVersion": "authentication.k8s.io/v1",
                "spec": {"token": "a." * (BIG // 2 - 100)},
            },
        ),
        (201,),
    )
    yield Attack(
        "delete options of 3 MB",
        lambda: Request(
            "DELETE", f"{MAPS}/none", _json({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"] * 400_000})
        ),
        (400, 404, 422),
    )
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "attack"},
        "involvedObject": {"kind": "Pod", "namespace": "default"},
        "message": "x" * (BIG - 1000),
    }
    yield Attack(
        "event of 3 MB",
        lambda: _post("/api/v1/namespaces/default/events", event),
        (201, 413, 422),
        remove=("/api/v1/namespaces/default/events/attack",),
    )


def _query_attacks() -> Iterator[Attack]:
    labels = ",".join(f"k{i} in (a,b)" for i in range(450)).replace(" ", "%20")
    fields = ",".join(f"metadata.name!=a{i}" for i in range(350))
    yield Attack("query: label selector of 7 KB", lambda: Request("GET", f"{MAPS}?labelSelector={labels}"), (200,))
    yield Attack("query: field selector of 7 KB", lambda: Request("GET", f"{MAPS}?fieldSelector={fields}"), (200,))
    values = ",".join(f"{i}" for i in range(1500))
    yield Attack(
        "query: label selector of many values",
        lambda: Request("GET", f"{MAPS}?labelSelector=a%20in%20({values})"),
        (200,),
    )
    yield Attack(
        "get as YAML: widget of 1.5 MB",
        lambda: Request("GET", f"{WIDGETS}/attack", accept=YAML),
        (200,),
        before=_WIDGET_BEFORE,
        remove=_WIDGET_AFTER,
    )
