"""Objects whose kind makes them expensive to process, and expensive queries."""

from collections.abc import Iterator
from typing import Any

from bench._attack_parts import (
    BIG,
    CLAIMS,
    CLASSES,
    DEFINITION,
    DEFINITIONS,
    MAPS,
    PODS,
    REVIEWS,
    ROLES,
    SLICES,
    TOKEN,
    WIDGET_AFTER,
    WIDGET_BEFORE,
    WIDGETS,
    YAML,
    Attack,
    Request,
    as_json,
    chain,
    claim,
    claim_of,
    containers,
    definition,
    device_class,
    pod,
    post,
    selector,
    slice_of,
)

_DRY_RUNS = ["All"] * 400_000


def attacks() -> Iterator[Attack]:
    yield from _cel_attacks()
    yield from _kind_attacks()
    yield from _query_attacks()


def _loops(i: int, j: int) -> str:
    some = "[1, 2, 3, 4, 5, 6, 7, 8]"
    inner = f"{some}.all(y, {some}.all(z, y + z + x < 1000))"
    return f"[{i}].all(x, device.driver.matches('g.u{j}[a-z]+{i}') || {inner})"


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
    yield claim("CEL: claim of 1,024 selectors", chain)
    yield claim("CEL: claim of 64 selectors", chain, 2)
    yield claim("CEL: claim of 1,024 patterns", lambda i, j: rf'device.driver.matches("\\pL{{{999 - i}}}|{j}")')
    yield claim("CEL: claim of 256 long selectors", lambda i, j: chain(i, j, 10_000), 8)
    yield claim("CEL: claim of 256 lists", lambda i, j: f"{i + j * 100} in [" + "1," * 5000 + "1]", 8)
    yield Attack(
        "CEL: claim on a slice of 128 devices, 32 loops",
        lambda: post(
            CLAIMS,
            claim_of(_loops, 1),
        ),
        (201,),
        before=(lambda: post(SLICES, slice_of(128)), lambda: post(CLASSES, device_class("true"))),
        remove=(f"{CLAIMS}/attack", f"{CLASSES}/attack", f"{SLICES}/attack"),
    )


def _affinity(terms: int) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    required = {"nodeSelectorTerms": [term] * terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _kind_attacks() -> Iterator[Attack]:
    yield Attack("slice of 128 devices", lambda: post(SLICES, slice_of(128)), (201, 422), remove=(f"{SLICES}/attack",))
    yield Attack("slice of 2,500 devices", lambda: post(SLICES, slice_of(2500)), (422,), remove=(f"{SLICES}/attack",))
    gated = {"schedulingGates": [{"name": "a"}]}
    gone = (f"{PODS}/attack",)
    yield Attack(
        "pod with 7,000 containers, gated",
        lambda: post(PODS, pod(containers=containers(7_000), **gated)),
        (201, 413, 422),
        remove=gone,
    )
    yield Attack(
        "pod with 7,000 containers",
        lambda: post(PODS, pod(containers=containers(7_000))),
        (201, 413, 422),
        remove=gone,
    )
    env = [{"name": f"E{i}", "value": f"$(E{i - 1})"} for i in range(30_000)]
    yield Attack(
        "pod with 30,000 variables",
        lambda: post(PODS, pod(containers=[{"name": "c", "image": "x", "env": env}])),
        (201, 413, 422),
        remove=gone,
    )
    yield Attack(
        "pod with 30,000 volumes",
        lambda: post(PODS, pod(volumes=[{"name": f"v{i}", "emptyDir": {}} for i in range(30_000)])),
        (201, 413, 422),
        remove=gone,
    )
    yield Attack(
        "pod with 60,000 tolerations",
        lambda: post(PODS, pod(tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(60_000)])),
        (201, 413, 422),
        remove=gone,
    )
    yield Attack(
        "pod with 25,000 claims",
        lambda: post(PODS, pod(resourceClaims=[{"name": f"c{i}", "resourceClaimName": "x"} for i in range(25_000)])),
        (201, 413, 422),
        remove=gone,
    )
    yield Attack("pod with 1,000 node selector terms", lambda: post(PODS, pod(affinity=_affinity(1_000))), remove=gone)
    yield Attack(
        "pod with 40,000 node selector terms",
        lambda: post(PODS, pod(affinity=_affinity(40_000))),
        (201, 413, 422),
        remove=gone,
    )
    yield Attack(
        "pod with 15,000 ports",
        lambda: post(
            PODS,
            pod(
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
        remove=gone,
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
    review = post(
        REVIEWS.replace("subjectaccessreviews", "selfsubjectrulesreviews"),
        {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": "default"}},
    )
    yield Attack(
        "role of 45,000 rules, bound",
        lambda: post(ROLES, {**role, "rules": rules}),
        (413, 422),
        before=(lambda: post(bindings, binding),),
        after=(review, Request("GET", f"{MAPS}?limit=1")),
        remove=(f"{ROLES}/attack", f"{bindings}/attack"),
    )
    yield Attack(
        "role of 6,000 rules, bound",
        lambda: post(ROLES, {**role, "rules": rules[:6000]}),
        (201,),
        before=(lambda: post(bindings, binding),),
        after=(review, Request("GET", f"{MAPS}?limit=1")),
        remove=(f"{ROLES}/attack", f"{bindings}/attack"),
    )
    subjects = [{"kind": "User", "name": f"u{i}", "apiGroup": "rbac.authorization.k8s.io"} for i in range(40_000)]
    yield Attack(
        "binding of 40,000 subjects",
        lambda: post(bindings, {**binding, "subjects": subjects}),
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
        lambda: post(DEFINITIONS, definition(properties)),
        (201, 413, 422),
        after=views,
        remove=(DEFINITION,),
    )
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        deep = {"type": "object", "properties": {"a": deep}}
    wide = {f"p{i}": deep for i in range(3000)}
    yield Attack(
        "CRD of 3,000 deep properties",
        lambda: post(DEFINITIONS, definition(wide)),
        (201, 413, 422),
        after=views,
        remove=(DEFINITION,),
    )
    yield Attack(
        "review of 3 MB",
        lambda: post(
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
        lambda: post(
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
        lambda: post(
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
        lambda: post(
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
            "DELETE",
            f"{MAPS}/none",
            as_json({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": _DRY_RUNS}),
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
        lambda: post("/api/v1/namespaces/default/events", event),
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
        before=WIDGET_BEFORE,
        remove=WIDGET_AFTER,
    )
