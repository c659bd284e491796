"""A small API on a real Unix socket, where a devlet would listen, with as much of Kubernetes as commands ask for."""

import json
import re
import shutil
import socket
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from devlet.cli import main
from devlet.cli.node_socket import NodeSocket
from devlet.cli.session import Session

Document = dict[str, Any]

CORE: list[Any] = [
    ("pods", "Pod", True, ["po"], ["all"]),
    ("configmaps", "ConfigMap", True, ["cm"], []),
    ("secrets", "Secret", True, [], []),
    ("events", "Event", True, ["ev"], []),
    ("nodes", "Node", False, ["no"], []),
    ("namespaces", "Namespace", False, ["ns"], []),
]
CLAIMS: list[Any] = [
    ("resourceclaims", "ResourceClaim", True, [], []),
    ("resourceslices", "ResourceSlice", False, [], []),
    ("deviceclasses", "DeviceClass", False, [], []),
    ("resourceclaimtemplates", "ResourceClaimTemplate", True, [], []),
]
GROUPS: dict[str, dict[str, list[Any]]] = {
    "apps": {"v1": [("deployments", "Deployment", True, ["deploy"], ["all"])]},
    "events.k8s.io": {"v1": [("events", "Event", True, ["ev"], [])]},
    "resource.k8s.io": {
        "v1": CLAIMS,
        "v1beta1": CLAIMS,
        "v1alpha3": [("devicetaintrules", "DeviceTaintRule", False, [], [])],
    },
}
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)


def _resource(plural: str, kind: str, namespaced: bool, short: list[str], categories: list[str]) -> Document:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced" if namespaced else "Cluster",
        "singularResource": kind.lower(),
        "verbs": VERBS,
        "shortNames": short,
        "categories": categories,
    }


def discovery(groups: dict[str, dict[str, list[Any]]]) -> Document:
    items = []
    for group, versions in groups.items():
        listed = [{"version": v, "resources": [_resource(*r) for r in found]} for v, found in versions.items()]
        items.append({"metadata": {"name": group} if group else {}, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}


def status(code: int, reason: str, message: str, **details: Any) -> Document:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


class API:
    """`answers` overrules what a request would get: (method, path) → (code, document)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.objects: dict[str, Document] = {}
        self.texts: dict[str, str] = {}  # by path
        self.answers: dict[tuple[str, str], tuple[int, Document]] = {}
        self.requests: list[tuple[str, str, Document | None]] = []
        self.headers: list[tuple[str, str]] = []
        self.on_watch: Callable[[], object] = lambda: None
        self.log: list[tuple[str, str, Document]] = []
        self.warnings: list[str] = []
        self.version = 10
        self.changed = threading.Condition(threading.RLock())
        self.stopped = False

    def put(self, path: str, document: Document) -> Document:
        with self.changed:
            self.version += 1
            parts = PATH.fullmatch(path)
            assert parts
            metadata = {"uid": f"uid-{parts['name']}", "creationTimestamp": "2026-01-02T03:04:05Z"}
            metadata = {} if parts["group"] == "devlet.dev" else metadata  # views are made when they are asked for
            metadata |= document.get("metadata") or {}
            metadata |= {"name": parts["name"], "resourceVersion": str(self.version)}
            if parts["namespace"]:
                metadata["namespace"] = parts["namespace"]
            type_ = "MODIFIED" if path in self.objects else "ADDED"
            self.objects[path] = document | {"metadata": metadata}
            self.log.append((type_, path, self.objects[path]))
            self.changed.notify_all()
            return self.objects[path]

    def remove(self, path: str) -> Document:
        with self.changed:
            self.version += 1
            gone = self.objects.pop(path)
            self.log.append(("DELETED", path, gone))
            self.changed.notify_all()
            return gone

    def events(self, matches: Callable[[str, Document], bool], after: int) -> Iterator[tuple[str, Document]]:
        position = next(
            (i for i, (_, _, o) in enumerate(self.log) if int(o["metadata"]["resourceVersion"]) > after), len(self.log)
        )
        self.on_watch()
        while True:
            with self.changed:
                while position >= len(self.log):
                    if self.stopped or not self.changed.wait(60):
                        return
                type_, path, found = self.log[position]
            position += 1
            if matches(path, found):
                yield type_, found


def _selected(query: dict[str, list[str]], found: Document) -> bool:
    for term in ",".join(query.get("fieldSelector", [])).split(","):
        if term:
            path, _, wanted = term.partition("=")
            value: Any = found
            for key in path.split("."):
                value = (value or {}).get(key)
            if value != wanted:
                return False
    labels = found["metadata"].get("labels", {})
    terms = [t for t in ",".join(query.get("labelSelector", [])).split(",") if t]
    return all(labels.get(t.partition("=")[0]) == t.partition("=")[2] for t in terms)


def _table(objects: list[Document], version: str) -> Document:
    columns = [
        {"name": "Name", "format": "name", "priority": 0},
        {"name": "Size", "priority": 0},
        {"name": "Node", "priority": 1},
    ]
    rows = []
    for o in objects:
        cells = [o["metadata"]["name"], len(o.get("data") or {}), (o.get("spec") or {}).get("nodeName", "<none>")]
        rows.append({"cells": cells, "object": o})
    return {"kind": "Table", "metadata": {"resourceVersion": version}, "columnDefinitions": columns, "rows": rows}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self, code: int, document: Document) -> None:
        self.send_body(code, json.dumps(document).encode(), "application/json")

    def send_body(self, code: int, body: bytes, type_: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", type_)
        self.send_header("Content-Length", str(len(body)))
        for name, value in self.server.api.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do(self) -> None:
        api, url = self.server.api, urlsplit(self.path)
        url = url._replace(path=unquote(url.path))
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        api.requests.append((self.command, self.path, body))
        query = parse_qs(url.query)
        if found := api.answers.get((self.command, url.path)):
            self.answer(*found)
        elif url.path in api.texts:
            self.send_body(200, api.texts[url.path].encode(), "text/plain")
        elif url.path in ("/api", "/apis"):
            self.answer(200, discovery({"": {"v1": CORE}} if url.path == "/api" else GROUPS))
        elif parts := PATH.fullmatch(url.path):
            self.resource(url.path, parts, query, body)
        else:
            self.answer(404, status(404, "NotFound", "no such path"))

    do_GET = do_PATCH = do_DELETE = do_POST = do

    def resource(self, path: str, parts: "re.Match[str]", query: dict[str, list[str]], body: Document | None) -> None:
        api = self.server.api
        if not parts["name"]:
            self.watch(path, parts, query) if "watch" in query else self.listing(path, parts, query)
        elif self.command == "PATCH":
            existed = path in api.objects
            merged = (api.objects.get(path) or {}) | (body or {})
            same = existed and {**merged, "metadata": 0} == {**api.objects[path], "metadata": 0}
            self.answer(200 if existed else 201, api.objects[path] if same else api.put(path, merged))
        elif path not in api.objects:
            name = f"{parts['plural']}.{parts['group']}" if parts["group"] else parts["plural"]
            self.answer(404, status(404, "NotFound", f'{name} "{parts["name"]}" not found', name=parts["name"]))
        elif self.command == "DELETE":
            finalizers = api.objects[path]["metadata"].get("finalizers")
            self.answer(200, api.objects[path] if finalizers or "dryRun" in (body or {}) else api.remove(path))
        else:
            self.answer(200, self.shaped([api.objects[path]], single=True))

    def matches(self, parts: "re.Match[str]", query: dict[str, list[str]]) -> Callable[[str, Document], bool]:
        def match(path: str, found: Document) -> bool:
            other = PATH.fullmatch(path)
            assert other
            same = all(other[k] == parts[k] for k in ("group", "plural"))
            return same and parts["namespace"] in (None, other["namespace"]) and _selected(query, found)

        return match

    def listing(self, path: str, parts: "re.Match[str]", query: dict[str, list[str]]) -> None:
        match = self.matches(parts, query)
        with self.server.api.changed:
            found = [o for p, o in sorted(self.server.api.objects.items()) if match(p, o)]
            self.answer(200, self.shaped(found))

    def shaped(self, found: list[Document], single: bool = False) -> Document:
        version = str(self.server.api.version)
        if "as=Table" in self.headers.get("Accept", ""):
            return _table(found, version)
        if single:
            return found[0]
        bare = [{k: v for k, v in o.items() if k not in ("kind", "apiVersion")} for o in found]
        return {"kind": "XList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": bare}

    def watch(self, path: str, parts: "re.Match[str]", query: dict[str, list[str]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        for type_, found in self.server.api.events(self.matches(parts, query), int(query["resourceVersion"][0])):
            shaped = (
                _table([found], "") | {"columnDefinitions": None} if "as=Table" in self.headers["Accept"] else found
            )
            line = json.dumps({"type": type_, "object": shaped}).encode() + b"\n"
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            except OSError:
                return
        self.wfile.write(b"0\r\n\r\n")


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    api: API

    def get_request(self) -> tuple[socket.socket, Any]:
        request, _ = super().get_request()
        return request, ("local", 0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that has seen enough closes in the middle of a watch


@pytest.fixture
def api() -> Iterator[API]:
    root = Path(tempfile.mkdtemp(prefix="dv"))
    server = Server(str(root / "devlet.sock"), Handler)
    server.api = API(root)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server.api
    with server.api.changed:
        server.api.stopped = True
        server.api.changed.notify_all()
    server.shutdown()
    thread.join()
    server.server_close()
    shutil.rmtree(root)


@pytest.fixture
def session(api: API) -> Iterator[Session]:
    """Warnings of the server are collected in `api.warnings`."""
    session = Session(NodeSocket(api.root), warn=api.warnings.append)
    yield session
    session.close()


class Run:
    """One command line against the API: `run("get", "pods")`, then `.out` and `.err` have what it printed."""

    def __init__(self, api: API, capture: pytest.CaptureFixture[str]) -> None:
        self.api = api
        self._capture = capture
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        code = main.run([*arguments, "--root", str(self.api.root)])
        self.out, self.err = self._capture.readouterr()
        return code


@pytest.fixture
def run(api: API, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(api, capsys)


NODES_AND_SLICES = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {zone: a}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2, labels: {zone: b}}}
- apiVersion: resource.k8s.io/v1
  kind: DeviceClass
  metadata: {name: gpu}
  spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: n1-gpu}
  spec:
    driver: gpu.example.com
    nodeName: n1
    pool: {name: n1, generation: 1, resourceSliceCount: 1}
    devices:
    - {name: gpu-0, attributes: {model: {string: a100}}, capacity: {memory: {value: 80Gi}}}
    - {name: gpu-1, attributes: {model: {string: a100}}, capacity: {memory: {value: 80Gi}}}
    - {name: gpu-2, attributes: {model: {string: l4}}, capacity: {memory: {value: 24Gi}}}
- apiVersion: resource.k8s.io/v1beta1
  kind: ResourceSlice
  metadata: {name: n2-gpu}
  spec:
    driver: gpu.example.com
    nodeName: n2
    pool: {name: n2, generation: 1, resourceSliceCount: 1}
    devices:
    - {name: gpu-0, basic: {attributes: {model: {string: l4}}, capacity: {memory: {value: 24Gi}}}}
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {name: training, namespace: default}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
  status:
    allocation:
      allocationTimestamp: "2026-01-02T03:04:05Z"
      devices: {results: [{request: gpu, driver: gpu.example.com, pool: n1, device: gpu-0}]}
      nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}
    reservedFor: [{resource: pods, name: trainer, uid: "1"}]
"""
WISHES = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: two-big}
spec:
  metadata: {labels: {team: a}}
  spec:
    devices:
      requests:
      - name: gpu
        deviceClassName: gpu
        count: 2
        selectors: [{cel: {expression: 'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))'}}]
---
apiVersion: v1
kind: Pod
metadata: {name: big}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: two-big}]
  containers: [{name: main, image: x}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: any}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A folder with a small cluster: on n1 one of three GPUs is taken, n2 has one; a pod that does not fit, a claim."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(NODES_AND_SLICES)
    (folder / "wishes.yaml").write_text(WISHES)
    return folder
