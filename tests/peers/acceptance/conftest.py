"""Two servers for one suite: devlet's embedded API and the real kube-apiserver, with the same assertions for both.

Where they differ on purpose, `server.differs(when, observed)` looks the expected text up in differences.toml. Each test
has a namespace of its own, and its own names for what has none, so tests of one server do not see each other.
"""

import http.client
import json
import secrets
import shutil
import ssl
import subprocess
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from devlet.kit.processes import RunningProcess, process
from devlet.testing.embedded import EmbeddedApi, embedded_api
from tests.support.peers.control_plane import ControlPlane, control_plane

Document = dict[str, Any]

SERVERS = ("embedded", "reference")
DIFFERENCES = {
    entry["when"]: entry
    for entry in tomllib.loads((Path(__file__).parent / "differences.toml").read_text())["difference"]
}
GROUPS = {
    "resource.k8s.io/v1": ("deviceclasses", "resourceslices", "resourceclaims", "resourceclaimtemplates"),
    "coordination.k8s.io/v1": ("leases",),
}
CLUSTER_SCOPED = ("deviceclasses", "namespaces", "nodes", "resourceslices")
PATCH_TYPES = {
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
DEADLINE = 60.0  # seconds for what a controller does


@dataclass(frozen=True)
class Answer:
    code: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def document(self) -> Document:
        found: Document = json.loads(self.body)
        return found

    @property
    def reason(self) -> str:
        return str(self.document.get("reason", ""))

    @property
    def causes(self) -> list[Document]:
        return list((self.document.get("details") or {}).get("causes") or [])

    @property
    def summary(self) -> str:
        """Code and reason, as the list of differences writes them."""
        return f"{self.code} {self.reason}".strip()


@dataclass
class Stream:
    """A watch that is open: its events one by one, None at its clean end."""

    response: http.client.HTTPResponse

    def next(self) -> Document | None:
        line = self.response.readline()
        return json.loads(line) if line else None

    def rest(self) -> list[Document]:
        return [event for event in iter(self.next, None) if event]


@dataclass(frozen=True)
class Server:
    """One of the two. `request` is plain HTTP with the administrator's token."""

    name: str
    api: EmbeddedApi | ControlPlane
    binaries: Path
    trust: ssl.SSLContext = field(repr=False)

    def differs(self, when: str, observed: str) -> None:
        """Assert that the server does what the list of differences says that it does."""
        assert observed == DIFFERENCES[when][self.name], f"{self.name}: when {when}"

    def request(
        self,
        method: str,
        path: str,
        body: Document | list[Any] | bytes | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        blob = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Accept": accept} | ({"Content-Type": content_type} if blob else {})
        with self._asked(method, path, blob, headers) as response:
            return Answer(response.status, dict(response.headers), response.read())

    @contextmanager
    def watch(self, path: str) -> Iterator[Stream]:
        """A watch of the list at `path`, open when the block begins."""
        mark = "&" if "?" in path else "?"
        with self._asked("GET", f"{path}{mark}watch=true", None, {"Accept": "application/json"}) as response:
            assert response.status == 200, response.read()
            yield Stream(response)

    @contextmanager
    def _asked(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        address = urlsplit(self.api.endpoint)
        assert address.hostname and address.port
        connection = http.client.HTTPSConnection(address.hostname, address.port, context=self.trust, timeout=60)
        identity = {"Authorization": f"Bearer {self.api.token}", "User-Agent": "acceptance/1"}
        with closing(connection):
            connection.request(method, path, body, {**identity, **headers})
            with connection.getresponse() as response:
                yield response

    def forget_history(self) -> None:
        """Versions from before now cannot be read any more; the embedded API's versions begin far above 1."""
        if isinstance(self.api, ControlPlane):
            body = json.dumps({"revision": self.newest_version()}).encode()
            with urllib.request.urlopen(f"{self.api.etcd_endpoint}/v3/kv/compaction", body, timeout=60) as answer:
                assert answer.status == 200

    def newest_version(self) -> int:
        return int(self.request("GET", "/api/v1/namespaces").document["metadata"]["resourceVersion"])


@dataclass(frozen=True)
class Site:
    """One test's place on a server: a namespace, and a word that makes its other names its own."""

    server: Server
    namespace: str
    word: str

    @property
    def node(self) -> str:
        return f"node-{self.word}"

    @property
    def driver(self) -> str:
        return f"{self.word}.example.com"

    def path(self, plural: str, name: str = "", subresource: str = "") -> str:
        version = next((version for version, plurals in GROUPS.items() if plural in plurals), "")
        scope = [] if plural in CLUSTER_SCOPED else ["namespaces", self.namespace]
        prefix = f"/apis/{version}" if version else "/api/v1"
        return "/".join(part for part in (prefix, *scope, plural, name, subresource) if part)

    def create(self, plural: str, document: Document, name: str = "", subresource: str = "", query: str = "") -> Answer:
        return self.server.request("POST", self.path(plural, name, subresource) + query, document)

    def created(self, plural: str, document: Document) -> Document:
        """What was stored; the answer must be a success."""
        answer = self.create(plural, document)
        assert answer.code == 201, answer.body
        return answer.document

    def get(self, plural: str, name: str = "", query: str = "") -> Answer:
        return self.server.request("GET", self.path(plural, name) + query)

    def put(self, plural: str, document: Document, subresource: str = "") -> Answer:
        path = self.path(plural, document["metadata"]["name"], subresource)
        return self.server.request("PUT", path, document)

    def patch(
        self, plural: str, name: str, patch: Any, *, kind: str = "merge", query: str = "", sub: str = ""
    ) -> Answer:
        path = self.path(plural, name, sub) + query
        return self.server.request("PATCH", path, patch, content_type=PATCH_TYPES[kind])

    def delete(self, plural: str, name: str, options: Document | None = None, query: str = "") -> Answer:
        return self.server.request("DELETE", self.path(plural, name) + query, options)

    async def kubectl(self, *arguments: str, stdin: Sequence[Document] = ()) -> subprocess.CompletedProcess[str]:
        """In the namespace of the test. `stdin` is for `-f -`; JSON is YAML."""
        text = "\n---\n".join(json.dumps(document) for document in stdin)
        return await self.server.api.kubectl("-n", self.namespace, *arguments, stdin=text)

    async def prints(self, *arguments: str, stdin: Sequence[Document] = ()) -> str:
        """What kubectl prints; it must succeed."""
        done = await self.kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def rows(self, *arguments: str) -> list[list[str]]:
        """The words of each line that kubectl prints."""
        return [line.split() for line in (await self.prints(*arguments)).splitlines()]

    async def fails(self, *arguments: str, stdin: Sequence[Document] = ()) -> str:
        """What kubectl complains of; its exit code must be 1."""
        done = await self.kubectl(*arguments, stdin=stdin)
        assert done.returncode == 1, done.stdout
        return done.stderr

    def running_kubectl(self, log: Path, *arguments: str) -> AbstractAsyncContextManager[RunningProcess]:
        """kubectl beside the block, with a PATH; what it prints goes to `log`."""
        flags = ("--kubeconfig", str(self.server.api.kubeconfig), "-n", self.namespace)
        return process(
            [self.server.binaries / "kubectl", *flags, *arguments], log=log, env={"HOME": str(self.server.api.root)}
        )

    @staticmethod
    def eventually(question: Callable[[], bool]) -> None:
        """Ask again until it is so: for what a controller does in its own time."""
        deadline = time.monotonic() + DEADLINE
        while not question():
            assert time.monotonic() < deadline, f"not so after {DEADLINE:g} s"
            time.sleep(0.05)

    @staticmethod
    def config_map(name: str = "cm1", **data: str) -> Document:
        metadata = {"name": name, "labels": {"a": "b"}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"k": "v"}}

    def node_document(self) -> Document:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        status = {"capacity": amounts, "allocatable": amounts}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}, "status": status}

    def class_document(self) -> Document:
        selectors = [{"cel": {"expression": f'device.driver == "{self.driver}"'}}]
        spec = {"selectors": selectors}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": self.driver},
            "spec": spec,
        }

    def template_document(self) -> Document:
        spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": self.driver}}]}}}
        metadata = {"name": "tmpl"}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": metadata,
            "spec": spec,
        }

    def claim_document(self, name: str = "c1") -> Document:
        spec = self.template_document()["spec"]["spec"]
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": spec,
        }

    def slice_document(self, devices: int = 2) -> Document:
        pool = {"name": self.node, "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": self.driver,
            "nodeName": self.node,
            "pool": pool,
            "devices": [{"name": f"gpu-{i}"} for i in range(devices)],
        }
        metadata = {"name": f"slice-{self.word}"}
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}

    def base(self) -> list[Document]:
        """base.yaml of the checklist."""
        return [self.node_document(), self.class_document(), self.template_document(), self.slice_document()]

    def pod_document(self, name: str = "p1", *, claim: bool = True) -> Document:
        container: Document = {"name": "c", "image": "busybox"}
        spec: Document = {"containers": [container]}
        if claim:
            container["resources"] = {"claims": [{"name": "gpu"}]}
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "tmpl"}]
        metadata = {"name": name, "labels": {"app": "a"}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def bound_pod(self, name: str = "p1") -> Document:
        """A pod that is on the test's node, with the usual 30 seconds of grace."""
        if self.get("nodes", self.node).code == 404:
            self.created("nodes", self.node_document())
        pod = self.pod_document(name, claim=False)
        pod["spec"]["nodeName"] = self.node
        return self.created("pods", pod)


@pytest.fixture(scope="session", params=SERVERS)
async def server(request: pytest.FixtureRequest, peers: Any) -> AsyncIterator[Server]:
    peers.need("kubectl")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with AsyncExitStack() as stack:
        api: EmbeddedApi | ControlPlane
        if request.param == "embedded":
            api = await stack.enter_async_context(embedded_api(path, binaries=peers.binaries))
        else:
            # Without a scheduler: pods stay where the tests put them.
            peers.need("etcd", "kube-apiserver", "kube-controller-manager")
            plane = control_plane(peers.binaries, path, controller_manager=True, fsync=False)
            api = await stack.enter_async_context(plane)
        yield Server(request.param, api, peers.binaries, ssl.create_default_context(cafile=str(api.ca_file)))
    shutil.rmtree(path)


@pytest.fixture
def site(server: Server) -> Site:
    """With a namespace that is ready for pods, which need its service account."""
    word = f"t{secrets.token_hex(4)}"
    place = Site(server, f"ns-{word}", word)
    place.created("namespaces", {"metadata": {"name": place.namespace}})
    place.eventually(lambda: place.get("serviceaccounts", "default").code == 200)
    return place
