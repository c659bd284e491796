"""The real kubectl reads devlet's discovery, OpenAPI and tables. They come from a server that knows nothing else: it
shows the recorded objects and says yes to whatever is written."""

import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from devlet.errors import NotFound
from devlet.objects.kinds import BUILT_IN, Catalogue, Kind
from devlet.objects.values.timestamps import parse_time
from devlet.serve.kube_api import discovery, paths
from devlet.serve.kube_api.negotiation import AGGREGATED, TABLE, negotiate, negotiate_discovery
from devlet.serve.kube_api.openapi_v3 import OpenAPIV3
from devlet.serve.kube_api.tables import table

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers]

Document = dict[str, Any]

VECTORS = json.loads((Path(__file__).resolve().parents[1] / "vectors" / "tables.json").read_text())
ROBOT = Kind("Robot", "robots", ("example.com/v1",), short_names=("rb",), categories=("all",))
ROBOT_SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"arms": {"type": "integer", "description": "How many."}}}},
}
CATALOGUE = Catalogue([*BUILT_IN, ROBOT])


def robot_schema(api_version: str, kind: str) -> Document | None:
    return ROBOT_SCHEMA if kind == "Robot" else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    openapi = OpenAPIV3(CATALOGUE, robot_schema)

    def do_GET(self) -> None:
        path, accept = urlsplit(self.path).path, self.headers["Accept"]
        if path in ("/api", "/apis"):
            form = negotiate_discovery(accept, aggregated=True)
            assert form
            plain = discovery.api_versions() if path == "/api" else discovery.group_list(CATALOGUE)
            whole = discovery.aggregated(CATALOGUE, core=path == "/api")
            self._answer(whole if form.as_kind == AGGREGATED else plain, content_type=form.content_type())
        elif path.startswith("/openapi/v3"):
            rendered = self.openapi.document(path.removeprefix("/openapi/v3/")) if path.count("/") > 2 else None
            self._send(200, (rendered or self.openapi.index()).body, "application/json")
        else:
            self._resource(path, accept)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(body, code=201)

    def log_message(self, format: str, *args: object) -> None:
        """kubectl says enough."""

    def _resource(self, path: str, accept: str) -> None:
        try:
            target = paths.parse(CATALOGUE, path)
            if isinstance(target, paths.GroupVersion):
                self._answer(discovery.resource_list(CATALOGUE, target.api_version))
            elif isinstance(target, paths.Target):
                self._objects(target, accept)
            else:
                raise NotFound(path)
        except NotFound as e:
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": "NotFound",
                "message": str(e),
            }
            self._answer({**status, "code": 404}, code=404)

    def _objects(self, target: paths.Target, accept: str) -> None:
        form = negotiate(accept, protobuf=False)
        assert form
        found = [
            entry["listed"]
            for entry in VECTORS["objects"]
            if entry["listed"]["kind"] == target.resource.kind.kind
            and entry["listed"]["apiVersion"] == target.resource.api_version
            and target.name in ("", entry["listed"]["metadata"]["name"])
        ]
        if target.name and not found:
            raise NotFound(f'{target.resource.name} "{target.name}" not found')
        if form.as_kind == TABLE:
            now = parse_time(VECTORS["now"])
            self._answer(table(target.resource, found, now=now, resource_version="1", version=form.version))
        elif target.name:
            self._answer(found[0])
        else:
            kind = f"{target.resource.kind.kind}List"
            self._answer({"kind": kind, "apiVersion": target.resource.api_version, "metadata": {}, "items": found})

    def _answer(self, document: Document, *, code: int = 200, content_type: str = "application/json") -> None:
        self._send(code, json.dumps(document).encode(), content_type)

    def _send(self, code: int, body: bytes, content_type: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@dataclass(frozen=True)
class Kubectl:
    program: Path
    server: str
    home: Path

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        command = [str(self.program), "--server", self.server, "--cache-dir", str(self.home / "cache"), *arguments]
        answer = subprocess.run(command, input=stdin, env={"HOME": str(self.home)}, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def kubectl(peers: "Peers") -> Iterator[Callable[..., str]]:
    peers.need("kubectl")
    home = Path(tempfile.mkdtemp(prefix="dv"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Kubectl(peers.binaries / "kubectl", f"http://127.0.0.1:{server.server_port}", home)
        server.shutdown()
    shutil.rmtree(home)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.mark.spec("KA-10.4")
def test_it_lists_the_resources_of_the_resource_group(kubectl: Callable[..., str]) -> None:
    found = {row[0]: row[1] for row in rows(kubectl("api-resources", "--api-group=resource.k8s.io", "--no-headers"))}
    v1 = dict.fromkeys(("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"), "v1")
    other = {"devicetaintrules": "v1beta2", "resourcepoolstatusrequests": "v1alpha3"}
    assert found == {name: f"resource.k8s.io/{version}" for name, version in (v1 | other).items()}


@pytest.mark.spec("KA-10.5")
def test_it_lists_the_api_versions(kubectl: Callable[..., str]) -> None:
    resource = {f"resource.k8s.io/{version}" for version in ("v1", "v1beta2", "v1beta1")}
    others = {"v1", "coordination.k8s.io/v1", "events.k8s.io/v1"}
    assert resource | others <= set(kubectl("api-versions").split())


@pytest.mark.spec("KA-10.9")
def test_it_prints_slices_with_our_columns(kubectl: Callable[..., str]) -> None:
    printed = rows(kubectl("get", "resourceslices"))
    assert printed[0] == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert printed[1][:4] == ["local", "n1", "gpu.example.com", "pool-1"]


@pytest.mark.spec("KA-10.16")
def test_it_prints_the_wide_columns_of_pods(kubectl: Callable[..., str]) -> None:
    header = kubectl("get", "pods", "-o", "wide").splitlines()[0]
    wanted = ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert [column for column in header.split("  ") if column.strip()] != []
    assert " ".join(header.split()) == " ".join(wanted)


@pytest.mark.spec("KA-10.17")
def test_it_prefixes_names_with_their_kind_when_it_prints_several(kubectl: Callable[..., str]) -> None:
    names = [row[0] for row in rows(kubectl("get", "nodes,resourceslices", "--no-headers"))]
    assert {name.partition("/")[0] for name in names} == {"node", "resourceslice.resource.k8s.io"}


@pytest.mark.spec("KA-10.18")
def test_all_means_the_kinds_of_that_category(kubectl: Callable[..., str]) -> None:
    names = [row[1] for row in rows(kubectl("get", "all", "-A", "--no-headers"))]
    kinds = {"pod", "service", "replicationcontroller", "replicaset.apps", "statefulset.apps", "daemonset.apps"}
    assert {name.partition("/")[0] for name in names} == kinds


@pytest.mark.spec("KA-10.19")
def test_it_explains_a_field(kubectl: Callable[..., str]) -> None:
    assert "FIELD: resourceClaims <[]PodResourceClaim>" in kubectl("explain", "pod.spec.resourceClaims")


@pytest.mark.parametrize("kind", list(CATALOGUE), ids=lambda kind: kind.key)
def test_it_explains_every_kind_that_is_served(kubectl: Callable[..., str], kind: Kind) -> None:
    printed = kubectl("explain", kind.plural, "--api-version", kind.api_versions[-1])
    assert f"KIND:       {kind.kind}\n" in printed
    assert "  metadata\t<ObjectMeta>" in printed


def test_it_explains_a_custom_resource_by_its_definition(kubectl: Callable[..., str]) -> None:
    assert "How many." in kubectl("explain", "robots.spec.arms")


@pytest.mark.parametrize("entry", VECTORS["objects"][:12], ids=lambda entry: entry["path"].rpartition("/")[2])
def test_it_sends_what_it_is_to_create(kubectl: Callable[..., str], entry: Document) -> None:
    printed = kubectl("create", "-f", "-", stdin=json.dumps(entry["document"]))
    assert printed.endswith(f"/{entry['document']['metadata']['name']} created\n")


def test_it_finds_custom_resources_by_their_short_name(kubectl: Callable[..., str]) -> None:
    assert kubectl("get", "rb") == ""
