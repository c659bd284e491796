"""The history of the root that `tools.make_upgrade_root` writes: two runs of an old devlet with old drivers.

The first run ends with SIGTERM, which checkpoints the database. The second one is killed, so its writes are in the
write-ahead log. When it is killed, `nic.example.com` fails to unprepare two claims, a pod has a finalizer, a pod waits
for devices that do not exist, and all others run.
"""

import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.documents import Document
from devlet.plugins.dra import DeviceReport
from devlet.testing import dra_orders
from devlet.testing.dra_orders import Fault, Orders
from devlet.testing.dra_script import UNPREPARE
from devlet.testing.embedded import READY_LINE
from devlet.testing.node_api import MERGE, PODS, NodeApi
from devlet.testing.node_process import NODE, pod
from tests.support.claim_node import CLAIMS, claim_pod

BOOT_ID = "00000000-0000-4000-8000-000000000001"
RESOURCE = "vendor.com/gpu"
EXTENDED = "example.com/gpu"
GPU, NIC = "gpu.example.com", "nic.example.com"
DRIVERS = {GPU: 8, NIC: 4}
TEAM = "team"
WIDGETS = f"/apis/example.com/v1/namespaces/{TEAM}/widgets"
COUNTER = f"/api/v1/namespaces/{TEAM}/configmaps/counter"
FINALIZER = "example.com/hold"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DRA = "/apis/resource.k8s.io/v1"
# The path is part of a static pod's UID. This one is the same for every root: devlet's working directory is its root.
MANIFESTS = "/proc/self/cwd/manifests"
TEN_YEARS = 315_360_000

# Do not write anything about the machine that creates the root.
_PROGRAM = f"""
import runpy, socket, sys
import devlet
assert devlet.__file__.startswith(sys.argv.pop(1)), devlet.__file__
socket.gethostname = lambda: "host.example.com"
from devlet.node import host
host.read = lambda root, **_: host.Host(
    cpus=4, memory=8 << 30, storage=64 << 30, boot_id={BOOT_ID!r}, machine_id="0" * 32, system_uuid="0" * 32,
    kernel="6.1.0", image="Linux")
runpy.run_module("devlet", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Old:
    """A devlet of an earlier commit: the interpreter that has its dependencies, and its `src`."""

    python: Path
    source: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.source), "PYTHONDONTWRITEBYTECODE": "1"}

    def devlet(self, *arguments: str | Path) -> list[str | Path]:
        return [self.python, "-c", _PROGRAM, str(self.source), *arguments]

    def module(self, name: str, *arguments: str | Path) -> list[str | Path]:
        return [self.python, "-m", f"devlet.testing.{name}", *arguments]


class Life:
    """One run of the old `devlet up`, with its plugin and drivers. Logs and orders are in `scratch`."""

    def __init__(self, old: Old, root: Path, scratch: Path) -> None:
        self.old = old
        self.root = root
        self.api = NodeApi(root)
        self.devlet: RunningProcess
        self._programs: list[RunningProcess] = []
        self._scratch = scratch
        self._number = 1 + len(list(scratch.glob("up-*.log")))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            argv = self.old.devlet("up", "--root", self.root, "--node-name", NODE)
            argv += ["--static-pod-path", MANIFESTS]
            self.devlet = await self._start(stack, "up", argv, READY_LINE)
            plugin: list[str | Path] = [
                "--directory",
                self.root / "device-plugins",
                "--resource",
                RESOURCE,
                "--devices",
                "8",
            ]
            await self._start(stack, "plugin", self.old.module("fake_device_plugin", *plugin), "plugin registered")
            for driver, devices in DRIVERS.items():
                await self._start_driver(stack, driver, devices)
            await self.api.until_healthy(RESOURCE, 8)
            yield

    async def _start_driver(self, stack: AsyncExitStack, name: str, devices: int) -> None:
        await self.command("token", "driver", name)
        argv: list[str | Path] = ["--root", self.root, "--driver", name, "--node-name", NODE, "--health"]
        argv += ["--devices", str(devices)]
        argv += ["--kubeconfig", self.root / "drivers" / f"{name}.kubeconfig", "--orders", self._orders(name)]
        await self._start(stack, name, self.old.module("fake_dra_driver", *argv), "driver serving")

    async def _start(self, stack: AsyncExitStack, name: str, argv: Sequence[str | Path], ready: str) -> RunningProcess:
        log = self._scratch / f"{name}-{self._number}.log"
        running = process(argv, log=log, name=name, ready=line(ready), env=self.old.environment, cwd=self.root)
        self._programs.append(await stack.enter_async_context(running))
        return self._programs[-1]

    def _orders(self, driver: str) -> Path:
        return self._scratch / f"{driver}.json"

    def order(self, driver: str, orders: Orders) -> None:
        dra_orders.write(self._orders(driver), orders)

    async def command(self, *arguments: str) -> str:
        """Run an old `devlet` to its end and return its output."""
        argv = list(map(str, self.old.devlet(*arguments, "--root", self.root)))
        answer = await anyio.run_process(argv, env=self.old.environment, stderr=sys.stderr, cwd=self._scratch)
        return answer.stdout.decode()

    async def kill(self) -> None:
        """Kill devlet first, so that its database does not record the end of the drivers."""
        for program in self._programs:
            program.send_signal(signal.SIGKILL)
            await program.wait()


def prepare(root: Path) -> None:
    """Create what an administrator puts into the root before the first start."""
    (root / "manifests").mkdir(mode=0o755)
    (root / "manifests" / "static.json").write_text(json.dumps(_unbound(pod("static", {RESOURCE: 1}))))


def break_drivers(life: Life) -> None:
    """Prepare the second run: one driver cannot unprepare anything, and the other has an unhealthy device."""
    life.order(NIC, Orders(number=1, faults=(Fault("fail", UNPREPARE, text="the network is down"),)))
    life.order(GPU, Orders(number=1, health=(DeviceReport(NODE, "dev-7", "Unhealthy", message="too hot"),)))


async def first_life(life: Life) -> None:
    """Create objects of many kinds, pods of every sort, and history."""
    api = life.api
    for path, document in OBJECTS:
        await api.call("POST", path, document)
    await api.call("PATCH", f"{WIDGETS}/one/status", {"status": {"ready": True}}, MERGE)
    for each in PODS_OF_FIRST_LIFE:
        await api.call("POST", PODS, each)
    await until_running(api, "plug", "init", "generated", "share-1", "extended", "held", "nic-ending", "nic-gone")
    await api.until_phase("done", "Succeeded")
    await api.until_pod("waiting", lambda pod: bool(pod["status"].get("conditions")))
    await until_running(api, f"static-{NODE}")


async def second_life(life: Life) -> Document:
    """Create more pods, and leave work unfinished when devlet is killed. Return what only the clients know."""
    api = life.api
    await api.call("POST", PODS, claim_pod("share-2", "shared"))
    await api.call("POST", PODS, pod("late", {RESOURCE: 2}))
    await until_running(api, "share-2", "late")
    for name in ("held", "nic-ending"):
        await api.call("DELETE", f"{PODS}/{name}")
    await api.call("DELETE", f"{PODS}/nic-gone?gracePeriodSeconds=0")
    await api.until_pod("held", lambda pod: "running" not in json.dumps(pod["status"]["containerStatuses"]))
    await api.until_event("FailedUnprepareDynamicResources")
    joining = await life.command("token", "node", "n2")
    return {"watch": await _history(api), "token": await _token(api), "nodeKubeconfig": joining}


async def _history(api: NodeApi) -> Document:
    """Change an object a few times. Return the versions, from which a client resumes its watch."""
    first = await api.call("GET", COUNTER)
    versions = []
    for number in range(5):
        changed = await api.call("PATCH", COUNTER, {"data": {"number": str(number)}}, MERGE)
        versions.append(changed["metadata"]["resourceVersion"])
    return {"path": COUNTER.rpartition("/")[0], "from": first["metadata"]["resourceVersion"], "versions": versions}


async def _token(api: NodeApi) -> str:
    path = f"/api/v1/namespaces/{TEAM}/serviceaccounts/builder/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TEN_YEARS},
    }
    token: str = (await api.call("POST", path, request))["status"]["token"]
    return token


async def until_running(api: NodeApi, *pods: str) -> None:
    for name in pods:
        await api.until_phase(name, "Running")


def _named(api_version: str, kind: str, name: str, **rest: object) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}


def _class(driver: str, **spec: object) -> Document:
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return _named("resource.k8s.io/v1", "DeviceClass", driver, spec={"selectors": [selector], **spec})


def _devices(driver: str, count: int = 1) -> Document:
    return {"devices": {"requests": [{"name": "req", "exactly": {"deviceClassName": driver, "count": count}}]}}


def _claim(name: str, driver: str, count: int = 1) -> tuple[str, Document]:
    return CLAIMS, _named("resource.k8s.io/v1", "ResourceClaim", name, spec=_devices(driver, count))


def _generated(name: str, limits: Mapping[str, int] = {}) -> Document:
    """Return a pod with a claim from the template."""
    document = claim_pod(name, "gpu")
    document["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    document["spec"]["containers"][0]["resources"]["limits"] = {key: str(value) for key, value in limits.items()}
    return document


def _unbound(document: Document) -> Document:
    return {**document, "spec": {key: value for key, value in document["spec"].items() if key != "nodeName"}}


def _with_init() -> Document:
    document = pod("init", {RESOURCE: 1})
    document["spec"]["initContainers"] = [{**document["spec"]["containers"][0], "name": "first"}]
    return document


def _held() -> Document:
    document = _generated("held", {RESOURCE: 1})
    document["metadata"]["finalizers"] = [FINALIZER]
    return document


_DEFINITION = _named(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "widgets.example.com",
    spec={
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}},
                            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                        },
                    }
                },
            }
        ],
    },
)
_SUBJECT = {"kind": "ServiceAccount", "name": "builder", "namespace": TEAM}
_RULE = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list"]}
_V1 = f"/api/v1/namespaces/{TEAM}"
_TEAM_RBAC = f"{RBAC}/namespaces/{TEAM}"
_IN_RBAC = "rbac.authorization.k8s.io"


def _role_ref(kind: str, name: str) -> Document:
    return {"roleRef": {"apiGroup": _IN_RBAC, "kind": kind, "name": name}, "subjects": [_SUBJECT]}


OBJECTS: Sequence[tuple[str, Document]] = (
    ("/api/v1/namespaces", _named("v1", "Namespace", TEAM)),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _DEFINITION),
    (WIDGETS, _named("example.com/v1", "Widget", "one", spec={"size": 3})),
    (f"{_V1}/configmaps", _named("v1", "ConfigMap", "counter", data={"number": "none"})),
    (f"{_V1}/secrets", _named("v1", "Secret", "password", data={"value": "c2VjcmV0"})),
    (f"{_V1}/serviceaccounts", _named("v1", "ServiceAccount", "builder")),
    (f"{_TEAM_RBAC}/roles", _named(f"{_IN_RBAC}/v1", "Role", "build", rules=[_RULE])),
    (f"{_TEAM_RBAC}/rolebindings", _named(f"{_IN_RBAC}/v1", "RoleBinding", "build", **_role_ref("Role", "build"))),
    (
        f"{RBAC}/clusterroles",
        _named(f"{_IN_RBAC}/v1", "ClusterRole", "see", rules=[{**_RULE, "apiGroups": [""], "resources": ["nodes"]}]),
    ),
    (
        f"{RBAC}/clusterrolebindings",
        _named(f"{_IN_RBAC}/v1", "ClusterRoleBinding", "see", **_role_ref("ClusterRole", "see")),
    ),
    (
        f"/apis/coordination.k8s.io/v1/namespaces/{TEAM}/leases",
        _named("coordination.k8s.io/v1", "Lease", "leader", spec={"holderIdentity": "one", "leaseDurationSeconds": 15}),
    ),
    (f"{DRA}/deviceclasses", _class(GPU, extendedResourceName=EXTENDED)),
    (f"{DRA}/deviceclasses", _class(NIC)),
    (
        f"{DRA}/namespaces/default/resourceclaimtemplates",
        _named("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu", spec={"spec": _devices(GPU)}),
    ),
    _claim("shared", GPU, 2),
    _claim("nic-ending", NIC),
    _claim("nic-gone", NIC),
    _claim("too-many", GPU, 9),
)

PODS_OF_FIRST_LIFE: Sequence[Document] = (
    pod("plug", {RESOURCE: 2}),
    _with_init(),
    pod("done", {RESOURCE: 1}, restart="Never", exit_code=0),
    _generated("generated"),
    claim_pod("share-1", "shared"),
    _unbound(pod("extended", {EXTENDED: 1})),
    claim_pod("nic-ending", "nic-ending"),
    claim_pod("nic-gone", "nic-gone"),
    claim_pod("waiting", "too-many"),
    _held(),
)
