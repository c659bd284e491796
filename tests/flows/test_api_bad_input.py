"""Whatever a client sends to a real daemon, the answer has the code that kube-apiserver 1.36 gives, in words that name
what was wrong, and the daemon goes on."""

import http.client
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from devlet.auth import kubeconfigs

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
MAP: dict[str, Any] = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "new"}, "data": {"k": "v"}}
POD: dict[str, Any] = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {}}
SLICE: dict[str, Any] = {
    "kind": "ResourceSlice",
    "apiVersion": "resource.k8s.io/v1",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}],
    },
}

IDLE = 12.0  # seconds; the default of 30 would only make the test slower
CONNECTIONS = 10_000
DEADLINE = 60.0
MIB = 1 << 20


@dataclass(frozen=True)
class Answer:
    code: int
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Api:
    pid: int
    address: str
    token: str = field(repr=False)
    trust: ssl.SSLContext
    log: Path

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        *,
        token: str | None = None,
        **more: str,
    ) -> Answer:
        token = self.token if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        blob = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with closing(http.client.HTTPSConnection(self.address, context=self.trust, timeout=DEADLINE)) as connection:
            connection.request(method, path, blob, headers | {"Content-Type": content_type} | more)
            response = connection.getresponse()
            return Answer(response.status, response.read())

    def silent_watch(self, path: str) -> ssl.SSLSocket:
        """A watch whose reader has a small buffer and never looks into it."""
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", self.port))
        encrypted = self.trust.wrap_socket(raw, server_hostname="127.0.0.1")
        request = (
            f"GET {path}?watch=true HTTP/1.1\r\nHost: {self.address}\r\nAuthorization: Bearer {self.token}\r\n\r\n"
        )
        encrypted.sendall(request.encode())
        return encrypted

    def memory(self, key: str = "VmRSS") -> int:
        """In bytes."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(key))


@contextmanager
def running(root: Path, *arguments: str) -> Iterator[Api]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEVLET_", "NOTIFY_", "WATCHDOG_", "NODE_NAME"))}
    log = root / "up.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "devlet", "up", "--root", str(root), *arguments],
            stdout=subprocess.PIPE,
            stderr=sink,
            env=kept,
        )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), log.read_text()
            config = kubeconfigs.read(root / "kubeconfig")
            address = config["clusters"][0]["cluster"]["server"].removeprefix("https://")
            trust = ssl.create_default_context(cafile=root / "pki" / "ca.crt")
            yield Api(process.pid, address, config["users"][0]["user"]["token"], trust, log)
        finally:
            process.terminate()
            process.wait(DEADLINE)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with tempfile.TemporaryDirectory(prefix="dv") as root, running(Path(root)) as api:
        assert api.call("POST", MAPS, {**MAP, "metadata": {"name": "old"}}).code == 201
        yield api


@dataclass(frozen=True)
class Bad:
    """One request, and what the answer is: `text` is in the message, `field` the field of the first cause."""

    method: str
    path: str
    body: Any
    content_type: str
    code: int
    reason: str
    text: str
    field: str = ""


def post(body: Any, text: str, *, path: str = MAPS, type_: str = JSON, code: int = 400, field: str = "") -> Bad:
    reason = {400: "BadRequest", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType", 422: "Invalid"}[code]
    return Bad("POST", path, body, type_, code, reason, text, field)


def put(metadata: dict[str, str], code: int, reason: str, text: str) -> Bad:
    return Bad("PUT", f"{MAPS}/old", {**MAP, "metadata": metadata}, JSON, code, reason, text)


def get(path: str, code: int, reason: str, text: str, field: str = "") -> Bad:
    return Bad("GET", path, None, JSON, code, reason, text, field)


def patch(body: Any, type_: str, code: int, reason: str, text: str, query: str = "", field: str = "") -> Bad:
    return Bad("PATCH", f"{MAPS}/old{query}", body, type_, code, reason, text, field)


BODIES = {
    "truncated JSON": post(b'{"kind":"ConfigMap",', "the object provided is unrecognized"),
    "no JSON": post(b"hello", "the object provided is unrecognized"),
    "a JSON list": post(b"[]", "expected an object, found list"),
    "no body": post(b"", "the object provided is unrecognized"),
    "JSON that is too deep": post(b'{"a":' * 20_000, "the object provided is unrecognized"),
    "a number where text belongs": post({**MAP, "data": {"k": 5}}, "number into field data.k of type string"),
    "text where a list belongs": post(
        {**POD, "spec": {"containers": "x"}}, "string into field spec.containers", path=PODS
    ),
    "protobuf without its prefix": post(b"\x0a\x02xx", "not Kubernetes protobuf", type_=PROTOBUF),
    "a truncated envelope": post(b"k8s\0\x0a\x10\x0a\x02v1", "envelope is malformed", type_=PROTOBUF),
    "nothing after the prefix": post(b"k8s\0", "ConfigMap): empty body", type_=PROTOBUF),
    "a truncated object": post(
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x03\x0a\x7f\x01", "ConfigMap in protobuf", type_=PROTOBUF
    ),
    "another format": post(b"{}", "unknown format - accepted media types include", type_="text/plain", code=415),
    "3 MiB": post({**MAP, "data": {"k": "x" * (3 << 20)}}, "limit is 3145728", code=413),
}
KINDS = {
    "an unknown kind": post({**MAP, "kind": "Foo"}, 'Foo in version "v1" cannot be handled as a ConfigMap'),
    "another kind": post(POD, 'Pod in version "v1" cannot be handled as a ConfigMap'),
    "an unknown version": post({**MAP, "apiVersion": "v2"}, 'ConfigMap in version "v2" cannot be handled'),
    "an unknown version of a group": post(
        {**SLICE, "apiVersion": "resource.k8s.io/v9"}, "cannot be handled as a ResourceSlice", path=SLICES
    ),
    "a resource that is not there": get("/api/v1/foos", 404, "NotFound", "could not find the requested resource"),
    "a version that is not there": get(
        "/apis/resource.k8s.io/v9/resourceslices", 404, "NotFound", "could not find the requested resource"
    ),
    "an unknown field, strictly": post(
        {**MAP, "foo": 1}, 'strict decoding error: unknown field "foo"', path=f"{MAPS}?fieldValidation=Strict"
    ),
    "a required field that is missing": post(
        POD, "spec.containers: Required value", path=PODS, code=422, field="spec.containers"
    ),
}
UPDATES = {
    "an old version": put({"name": "old", "resourceVersion": "1"}, 409, "Conflict", "the object has been modified"),
    "another uid": put({"name": "old", "uid": "x"}, 409, "Conflict", "UID in precondition: x"),
    "another name": put({"name": "b"}, 400, "BadRequest", "name of the object (b) does not match the name on the URL"),
    "another namespace": put({"name": "old", "namespace": "x"}, 400, "BadRequest", "does not match the namespace sent"),
    "a name that is taken": Bad(
        "POST",
        MAPS,
        {**MAP, "metadata": {"name": "old"}},
        JSON,
        409,
        "AlreadyExists",
        'configmaps "old" already exists',
    ),
    "a precondition that fails": Bad(
        "DELETE", f"{MAPS}/old", {"preconditions": {"uid": "x"}}, JSON, 409, "Conflict", "UID in the precondition (x)"
    ),
}
SELECTORS = {
    "an open bracket": get(f"{MAPS}?labelSelector=a+in+(", 400, "BadRequest", "unable to parse requirement: found ''"),
    "a bad label": get(f"{MAPS}?labelSelector=a%3D-b-", 400, "BadRequest", 'values[0][a]: Invalid value: "-b-"'),
    "a field of no use": get(f"{PODS}?fieldSelector=spec.foo%3Dx", 400, "BadRequest", "not supported: spec.foo"),
    "a field of slices": get(
        f"{SLICES}?fieldSelector=spec.pool.name%3Dx", 400, "BadRequest", "Kind=ResourceSlice: spec.pool.name"
    ),
    "no selector at all": get(f"{MAPS}?fieldSelector=xx", 400, "BadRequest", "invalid selector: 'xx'"),
    "a limit in words": get(f"{MAPS}?limit=two", 400, "BadRequest", '"two"'),
    "a made-up token": get(f"{MAPS}?limit=1&continue=xxx", 400, "BadRequest", "continue key is not valid"),
    "a version in words": get(f"{MAPS}?resourceVersion=abc", 400, "BadRequest", 'Invalid value: "abc"'),
    "half of a watch list": get(
        f"{MAPS}?watch=true&sendInitialEvents=true", 422, "Invalid", "sendInitialEvents", "resourceVersionMatch"
    ),
}
PATCHES = {
    "truncated JSON": patch(b"{", MERGE_PATCH, 400, "BadRequest", "truncated"),
    "a truncated strategic patch": patch(b"{", STRATEGIC_PATCH, 400, "BadRequest", "truncated"),
    "a truncated list": patch(b"[", JSON_PATCH, 400, "BadRequest", "truncated"),
    "an object for a list": patch({}, JSON_PATCH, 400, "BadRequest", "list of operations"),
    "a list for an object": patch([], MERGE_PATCH, 400, "BadRequest", "is not an object"),
    "a path that leads nowhere": patch(
        [{"op": "remove", "path": "/data/zz"}], JSON_PATCH, 422, "Invalid", '"/data/zz" does not exist'
    ),
    "a test that fails": patch(
        [{"op": "test", "path": "/data/k", "value": "no"}], JSON_PATCH, 422, "Invalid", "/data/k"
    ),
    "too many operations": patch(
        [{"op": "remove", "path": "/data"}] * 10_001, JSON_PATCH, 413, "RequestEntityTooLarge", "10000, got 10001"
    ),
    "a number where text belongs": patch({"data": {"k": 5}}, MERGE_PATCH, 422, "Invalid", "data.k", field="patch"),
    "another name": patch({"metadata": {"name": "z"}}, MERGE_PATCH, 400, "BadRequest", "name of the object (z)"),
    "a type that is none": patch({}, JSON, 415, "UnsupportedMediaType", "415: Unsupported Media Type"),
    "apply without a manager": patch(
        MAP, APPLY_PATCH, 422, "Invalid", "fieldManager: Required value", "", "fieldManager"
    ),
    "apply of no object": patch(
        b"data: {k: v}", APPLY_PATCH, 400, "BadRequest", "invalid object type", "?fieldManager=m"
    ),
    "3 MiB": patch(
        {"data": {"k": "x" * (3 << 20)}}, MERGE_PATCH, 413, "RequestEntityTooLarge", "Request entity too large"
    ),
}
INVALID_NAME = "metadata.name: Invalid value"
NAMES = {
    "..": get(f"{MAPS}/..", 400, "BadRequest", "Name parameter invalid: \"..\": may not be '..'"),
    "%2e%2e": get(f"{MAPS}/%2e%2e", 400, "BadRequest", "Name parameter invalid: \"..\": may not be '..'"),
    "a%2fb": get(f"{MAPS}/a%2fb", 404, "NotFound", "could not find the requested resource"),
    "a%00b": get(f"{MAPS}/a%00b", 404, "NotFound", ""),
    "%ff": get(f"{MAPS}/%ff", 404, "NotFound", ""),
    "out of the tree": get("/api/v1/namespaces/../../etc/passwd", 404, "NotFound", "could not find the requested"),
    **{
        f"a new {name[:8]}": post({**MAP, "metadata": {"name": name}}, INVALID_NAME, code=422, field="metadata.name")
        for name in ("..", "a/b", "a%b", "A", "a" * 254)
    },
    "a new one without": post(
        {**MAP, "metadata": {}}, "metadata.name: Required value", code=422, field="metadata.name"
    ),
    "a method for another place": Bad("PUT", MAPS, MAP, JSON, 405, "MethodNotAllowed", "does not allow this method"),
}
WRONG = ("BadRequest", "cannot unmarshal")
TYPES = {
    "metadata that is not an object, applied": patch(
        {**MAP, "metadata": 5}, APPLY_PATCH, 400, "BadRequest", "metadata is number, not an object", "?fieldManager=m"
    ),
    "audiences that are not a list": post(
        {"spec": {"audiences": 1.5}},
        "number into field spec.audiences of type array",
        path="/api/v1/namespaces/default/serviceaccounts/default/token",
    ),
    "an integer that no type holds": post(
        {**MAP, "immutable": 10**300}, "number into field immutable of type bool", path=MAPS
    ),
    "an unknown field that no type holds": post(
        b'{"metadata":{"name":"new"},"foo":' + b"9" * 5000 + b"}", "out of range", path=MAPS
    ),
    "a value that an older version does not know": post(
        {
            "apiVersion": "resource.k8s.io/v1beta1",
            "metadata": {"name": "new"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": "x"}}]}},
        },
        "string into field spec.devices.requests[0].exactly.count of type int64",
        path="/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims",
    ),
    "options of a deletion": Bad("DELETE", f"{MAPS}/old", {"dryRun": True}, JSON, 400, *WRONG),
    "a precondition that is not an object": Bad("DELETE", f"{MAPS}/old", {"preconditions": "x"}, JSON, 400, *WRONG),
    "a policy that is not a string": Bad("DELETE", f"{MAPS}/old", {"propagationPolicy": 1.5}, JSON, 400, *WRONG),
}
ALL = [
    pytest.param(bad, id=f"{group}: {name}")
    for group, cases in (
        *(("body", BODIES), ("kind", KINDS), ("update", UPDATES)),
        *(("selector", SELECTORS), ("patch", PATCHES), ("name", NAMES), ("type", TYPES)),
    )
    for name, bad in cases.items()
]


@pytest.mark.spec("KA-3.9")
@pytest.mark.parametrize("bad", ALL)
def test_bad_input_is_answered_with_a_status_that_says_what_is_wrong(api: Api, bad: Bad) -> None:
    answer = api.call(bad.method, bad.path, bad.body, bad.content_type)
    status = answer.document
    assert (answer.code, status["kind"], status["status"]) == (bad.code, "Status", "Failure"), status
    assert (status["code"], status["reason"]) == (bad.code, bad.reason), status
    assert bad.text in status["message"]
    if bad.field:
        assert status["details"]["causes"][0]["field"] == bad.field


def test_a_secret_with_a_null_value_has_an_empty_one(api: Api) -> None:
    secret = {"metadata": {"name": "null"}, "data": {"k": None}, "stringData": {"s": None}}
    answer = api.call("POST", "/api/v1/namespaces/default/secrets", secret)
    assert (answer.code, answer.document["data"]) == (201, {"k": "", "s": ""})


def test_an_unknown_integer_that_64_bits_cannot_hold_is_kept_as_a_float(api: Api) -> None:
    answer = api.call("POST", MAPS, {**MAP, "metadata": {"name": "large"}, "foo": 10**30})
    assert (answer.code, answer.document["foo"]) == (201, 1e30)


@pytest.mark.spec("KA-6.1")
@pytest.mark.parametrize(
    ("header", "code", "reason", "text"),
    [
        ("", 403, "Forbidden", 'User "system:anonymous" cannot list resource "configmaps"'),
        ("Basic eDp5", 403, "Forbidden", 'User "system:anonymous" cannot list resource "configmaps"'),
        ("Bearer nonsense", 401, "Unauthorized", "Unauthorized"),
        ("Bearer e30.e30.e30", 401, "Unauthorized", "Unauthorized"),
        ("Bearer " + "x" * 10_000, 401, "Unauthorized", "Unauthorized"),
    ],
)
def test_a_missing_token_is_forbidden_and_a_wrong_one_unauthorized(
    api: Api, header: str, code: int, reason: str, text: str
) -> None:
    more = {"Authorization": header} if header else {}
    answer = api.call("GET", MAPS, token="", **more)
    assert (answer.code, answer.document["reason"]) == (code, reason)
    assert text in answer.document["message"]


@pytest.fixture(scope="module")
def driver(api: Api) -> str:
    """The token of a driver on node n1."""
    account = "devlet-driver-gpu.example.com"
    accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}
    assert api.call("POST", "/api/v1/nodes", node).code == 201
    assert api.call("POST", accounts, {"metadata": {"name": account}}).code == 201
    bound = {"kind": "Node", "apiVersion": "v1", "name": "n1"}
    request = {"spec": {"expirationSeconds": 3600, "boundObjectRef": bound}}
    answer = api.call("POST", f"{accounts}/{account}/token", request)
    assert answer.code == 201, answer.body
    return str(answer.document["status"]["token"])


@pytest.mark.spec("KA-6.3")
def test_a_driver_writes_the_slices_of_its_own_node_and_no_others(api: Api, driver: str) -> None:
    foreign = {**SLICE, "metadata": {"name": "foreign"}, "spec": {**SLICE["spec"], "nodeName": "n2"}}
    assert api.call("POST", SLICES, foreign).code == 201
    assert api.call("POST", SLICES, SLICE, token=driver).code == 201
    for method, path, body in (
        ("POST", SLICES, {**foreign, "metadata": {"name": "another"}}),
        ("PUT", f"{SLICES}/foreign", foreign),
        ("DELETE", f"{SLICES}/foreign", None),
    ):
        answer = api.call(method, path, body, token=driver)
        assert (answer.code, answer.document["reason"]) == (403, "Forbidden"), answer.document
        assert "node" in answer.document["message"].lower()
    moved = {**SLICE, "spec": {**SLICE["spec"], "nodeName": "n2"}}
    assert api.call("PUT", f"{SLICES}/s", moved, token=driver).code in (403, 422)
    assert api.call("DELETE", f"{SLICES}/s", token=driver).code == 200
    assert api.call("GET", f"{SLICES}/foreign").code == 200


@pytest.mark.long
def test_a_client_that_never_reads_its_watch_costs_a_bounded_amount_of_memory(root: Path) -> None:
    body = {**MAP, "metadata": {"name": "big"}}
    writes, size = 800, 200_000  # more than twice what a watcher may have waiting
    with running(root) as api, closing(api.silent_watch(MAPS)), closing(api.silent_watch("/api/v1/configmaps")):
        assert api.call("POST", MAPS, body).code == 201
        before = api.memory()
        connection = http.client.HTTPSConnection(api.address, context=api.trust, timeout=DEADLINE)
        with closing(connection):
            for number in range(writes):
                blob = json.dumps({**body, "data": {"k": f"{number}" + "x" * size}}).encode()
                headers = {"Authorization": f"Bearer {api.token}", "Content-Type": JSON}
                connection.request("PUT", f"{MAPS}/big", blob, headers)
                response = connection.getresponse()
                assert response.status == 200, response.read()
                response.read()
        grown = api.memory("VmHWM") - before
        assert api.call("GET", f"{MAPS}/big").code == 200
    assert grown < 140 * MIB, f"{grown / MIB:.0f} MiB more for {writes * size / MIB:.0f} MiB of events"


@pytest.mark.long
@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < CONNECTIONS + 500, reason="the limit of open files is too low"
)
def test_ten_thousand_idle_connections_are_closed_and_nobody_else_notices(root: Path) -> None:
    config = root / "config.yaml"
    config.write_text(f"apiVersion: devlet.dev/v1alpha1\nkind: Configuration\ntimeouts:\n  apiIdle: {IDLE:g}s\n")
    plain, encrypted = CONNECTIONS - 500, 500
    script = Path(__file__).with_name("idle_connections.py")
    with running(root, "--config", str(config)) as api:
        client = subprocess.Popen(
            [sys.executable, str(script), str(api.port), str(plain), str(encrypted)], stdout=subprocess.PIPE, text=True
        )
        with client:
            assert client.stdout is not None
            assert client.stdout.readline() == "open\n"
            assert api.call("POST", MAPS, MAP).code == 201
            assert client.stdout.readline(), "the connections were not closed"
            assert client.wait(DEADLINE) == 0
        peak = api.memory("VmHWM")
        assert api.call("GET", f"{MAPS}/new").code == 200
        end = time.monotonic() + DEADLINE
        while (open_files := len(os.listdir(f"/proc/{api.pid}/fd"))) >= 100 and time.monotonic() < end:
            time.sleep(0.1)
        assert open_files < 100
    assert peak < 1024 * MIB, f"{peak / MIB:.0f} MiB"


def test_watches_that_are_open_when_the_daemon_stops_leave_no_trace(root: Path) -> None:
    with running(root) as api:
        watches = [api.silent_watch(MAPS) for _ in range(5)]
        for watch in watches:
            assert watch.recv(12) == b"HTTP/1.1 200"
    for watch in watches:
        watch.close()
    assert complaints(api.log) == []


def complaints(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if line[:1] in ("W", "E") or "Traceback" in line]


def test_the_daemon_has_not_stumbled_over_any_of_this(api: Api) -> None:
    assert complaints(api.log) == []
