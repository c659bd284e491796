"""Bodies that are expensive to parse, and patches that are expensive to apply."""

from collections.abc import Callable, Iterator
from typing import Any

from bench._attack_parts import (
    APPLY_PATCH,
    BIG,
    MAP,
    MAPS,
    MERGE_PATCH,
    PODS,
    STRATEGIC_PATCH,
    WIDGET_AFTER,
    WIDGET_BEFORE,
    WIDGETS,
    YAML,
    YAML_HEAD,
    Attack,
    Request,
    apply,
    as_json,
    config_map,
    containers,
    in_map,
    keys,
    list_patch,
    nested_groups,
    patch,
    pod,
    post,
    protobuf,
    widget,
    yaml,
)


def attacks() -> Iterator[Attack]:
    yield from _yaml_attacks()
    yield from _json_attacks()
    yield from _metadata_attacks()
    yield from _patch_attacks()


def _yaml_attacks() -> Iterator[Attack]:
    def of(name: str, rest: Callable[[], bytes], codes: tuple[int, ...] = (201, 400, 413, 422)) -> Attack:
        return Attack(f"YAML: {name}", lambda: yaml(rest()[:BIG]), codes, remove=MAP)

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
        return Attack(f"JSON: {name}", lambda: post(MAPS, body()), codes, remove=MAP)

    head = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"attack"},'
    yield of("200,000 keys", lambda: as_json(config_map(keys(200_000))))
    yield of("100,000 keys", lambda: as_json(config_map(keys(100_000))))
    yield of("one value of 3 MB", lambda: as_json(config_map({"k": "x" * (BIG - 100)})))
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
        lambda: post(WIDGETS, widget(**keys(100_000))),
        before=WIDGET_BEFORE[:1],
        remove=WIDGET_AFTER,
    )
    yield Attack(
        "JSON: custom resource of 200,000 lists, answered as YAML",
        lambda: post(WIDGETS, widget(x=[[] for _ in range(200_000)]), accept=YAML),
        before=WIDGET_BEFORE[:1],
        remove=WIDGET_AFTER,
    )
    yield Attack(
        "protobuf: config map with 200,000 keys",
        lambda: protobuf(config_map(keys(200_000)), MAPS),
        (201, 413, 422),
        remove=MAP,
    )
    yield Attack("protobuf: 1,500,000 small fields", nested_groups, (201, 400, 422), remove=MAP)
    yield Attack(
        "protobuf: pod with 40,000 containers",
        lambda: protobuf(pod(containers=containers(40_000), schedulingGates=[{"name": "a"}]), PODS),
        (201, 413, 422),
        remove=(f"{PODS}/attack",),
    )


def _metadata_attacks() -> Iterator[Attack]:
    def of(name: str, key: str, value: Callable[[], Any]) -> Attack:
        return Attack(f"metadata: {name}", in_map(key, value), (201, 400, 413, 422), remove=MAP)

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
    yield Attack("JSON patch: 10,000 moves in a list", list_patch(moves), before=WIDGET_BEFORE, remove=WIDGET_AFTER)
    tests = [{"op": "test", "path": "/spec/list/0", "value": 0}] * 10_000
    yield Attack("JSON patch: 10,000 tests", list_patch(tests), before=WIDGET_BEFORE, remove=WIDGET_AFTER)
    whole = [{"op": "copy", "from": "/spec/list", "path": "/spec/copy"}] * 10_000
    yield Attack(
        "JSON patch: 10,000 copies", list_patch(whole), (200, 413, 422), before=WIDGET_BEFORE, remove=WIDGET_AFTER
    )
    value = [{"op": "test", "path": "/spec", "value": {"list": [*range(149_999), 0]}}]
    yield Attack("JSON patch: one large test", list_patch(value), (422,), before=WIDGET_BEFORE, remove=WIDGET_AFTER)
    path = "/spec/" + "a/" * 140
    yield Attack(
        "JSON patch: long paths",
        list_patch([{"op": "remove", "path": path}] * 10_000),
        (422,),
        before=WIDGET_BEFORE,
        remove=WIDGET_AFTER,
    )
    yield Attack(
        "merge patch: 200,000 keys",
        patch(MERGE_PATCH, lambda: {"data": keys(200_000)}),
        (200, 413, 422),
        before=(lambda: post(MAPS, config_map(keys(100_000))),),
        remove=MAP,
    )
    gated = {"schedulingGates": [{"name": "a"}]}
    env = [{"name": f"E{i}", "value": "v"} for i in range(30_000)]
    yield Attack(
        "strategic merge patch: variables of a pod",
        lambda: Request(
            "PATCH",
            f"{PODS}/attack",
            as_json({"spec": {"containers": [{"name": "c", "env": env[::-1]}]}}),
            STRATEGIC_PATCH,
        ),
        (200, 413, 422),
        before=(lambda: post(PODS, pod(containers=[{"name": "c", "image": "x", "env": env}], **gated)),),
        remove=(f"{PODS}/attack",),
    )
    order = [f"example.com/f{i}" for i in range(1_000)]
    yield Attack(
        "strategic merge patch: order of finalizers",
        lambda: Request(
            "PATCH",
            f"{MAPS}/attack",
            as_json({"metadata": {"$setElementOrder/finalizers": order[::-1], "finalizers": order[::-1]}}),
            STRATEGIC_PATCH,
        ),
        (200, 413, 422),
        before=(lambda: post(MAPS, config_map(finalizers=order)),),
    )
    yield Attack(
        "strategic merge patch: deletions from a list",
        lambda: Request(
            "PATCH",
            f"{MAPS}/attack",
            as_json({"metadata": {"$deleteFromPrimitiveList/finalizers": order[::-1] * 100}}),
            STRATEGIC_PATCH,
        ),
        (200, 413, 422),
        remove=MAP,
    )

    def applied() -> dict[str, Any]:
        return config_map(keys(100_000))

    yield Attack("apply: 100,000 fields", apply("a", applied), (200, 201, 413, 422))
    for i in range(3):
        yield Attack(f"apply: 100,000 fields, manager {i + 2}", apply(f"m{i}", applied), (200, 201, 413, 422))
    yield Attack(
        "apply: none of 100,000 fields", apply("a", lambda: config_map({"z": "1"})), (200, 201, 413, 422), remove=MAP
    )
    yield Attack(
        "apply: 110,000 small fields of a widget",
        apply("a", lambda: widget(**{f"{i}": 1 for i in range(110_000)}), f"{WIDGETS}/attack"),
        (200, 201, 413, 422),
        before=WIDGET_BEFORE,
        remove=WIDGET_AFTER,
    )
    yield Attack(
        "apply: YAML, 200,000 keys",
        lambda: Request(
            "PATCH",
            f"{MAPS}/attack?fieldManager=a",
            YAML_HEAD + b"data:\n" + b"".join(b"  k%d: ''\n" % i for i in range(200_000)),
            APPLY_PATCH,
        ),
        (200, 201, 413, 422),
        remove=MAP,
    )
