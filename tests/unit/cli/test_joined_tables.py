"""Against the real API, with views that are made of what the node's managers would say."""

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.cli import main
from devlet.cluster.store.store import Store, open_store
from devlet.daemon.config import Config
from devlet.daemon.kube_api import serving
from devlet.kit.clock import SystemClock
from devlet.node.claims.records import ClaimKey, ClaimRecord, ClaimState, ContainerClaim, DriverPart, PodWait
from devlet.node.devices.records import DeviceRecord, PluginRecord
from devlet.node.node_slices import NodeSlices
from devlet.node.views import NodeViews
from devlet.objects.documents import Document
from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName, NodeName, PodUID
from devlet.objects.kinds import BUILT_IN, RESOURCE_CLAIMS, RESOURCE_SLICES
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.container import Container
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod
from devlet.plugins.dra import DriverRecord, HealthService, Service

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

pytestmark = pytest.mark.anyio

GPU, NIC = DriverName("gpu.example.com"), DriverName("nic.example.com")
NOW = datetime.now(UTC)
AGO, LATER = NOW - timedelta(days=10, hours=12), NOW + timedelta(days=10, hours=12)


class Node:
    """What the node's managers know, all in one; changed by the tests."""

    def __init__(self) -> None:
        self.claims: list[ClaimRecord] = []
        self.waiting: list[PodWait] = []
        self.instances: list[DriverRecord] = []
        self.wipes: dict[DriverName, datetime] = {}
        self.pods: list[Pod] = []

    def waits(self) -> Sequence[PodWait]:
        return self.waiting

    def active(self) -> Sequence[Pod]:
        return self.pods

    def device_records(self) -> Sequence[DeviceRecord]:
        return []

    def plugin_records(self) -> Sequence[PluginRecord]:
        return []

    def container_devices(self, pod: Any, container: Any) -> Mapping[Any, Any]:
        return {}

    def options(self, pod: Any, container: Any) -> None:
        return None


class Claims:
    def __init__(self, node: Node) -> None:
        self.waits = node.waits
        self.records = lambda: node.claims

    async def release(self, key: ClaimKey, *, force: bool) -> None:
        raise AssertionError("nothing is released here")

    def container_claims(self, pod: Pod, container: Container) -> Sequence[ContainerClaim]:
        return []


class Drivers:
    def __init__(self, node: Node) -> None:
        self.records = lambda: node.instances


class Wipes:
    def __init__(self, node: Node) -> None:
        self.records = lambda: node.wipes


Devlet = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db", clock=SystemClock(), kinds=BUILT_IN) as store:
        yield store


@pytest.fixture
async def devlet(store: Store, node: Node, root: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Devlet]:
    """A command line, and what it said. What happened during the test is 0s old."""

    async def run(*arguments: str, target: Sequence[str] = ("--root", str(root))) -> tuple[int, str, str]:
        code = await anyio.to_thread.run_sync(main.run, [*arguments, *target])
        out, err = capsys.readouterr()
        out = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", out)
        return code, re.sub(r"\b\d{1,2}s\b", lambda age: "0s".ljust(len(age[0])), out), err

    slices = NodeSlices(store, NodeName("node1"), Wipes(node))
    views = NodeViews(node, node, claims=Claims(node), drivers=Drivers(node), slices=slices)
    async with serving(store, Config(root=root, node_name="node1"), SystemClock(), views=views):
        yield run


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"))


def wait(name: str, *claims: str, message: str = "", drivers: tuple[DriverName, ...] = ()) -> PodWait:
    keys = tuple(ClaimKey("default", ClaimName(claim)) for claim in claims)
    return PodWait(PodUID(f"uid-{name}"), keys, AGO, message, drivers)


async def put_claim(
    store: Store, name: str, devices: Sequence[tuple[str, str]] = (), reserved: Sequence[str] = (), **metadata: Any
) -> ClaimUID:
    """`devices` are (driver, device) in the pool of node1."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": max(1, len(devices))}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    made = await store.create(RESOURCE_CLAIMS, {"metadata": {"name": name} | metadata, "spec": spec}, "default")
    if devices:
        results = [{"request": "gpu", "driver": d, "pool": "node1", "device": id} for d, id in devices]
        field = {"key": "metadata.name", "operator": "In", "values": ["node1"]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        users = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in reserved]
        status = {"allocation": {"devices": {"results": results}, "nodeSelector": selector}, "reservedFor": users}
        await store.update(RESOURCE_CLAIMS, made | {"status": status}, subresource="status")
    return ClaimUID(made["metadata"]["uid"])


async def put_slice(store: Store, driver: str, *devices: str) -> None:
    pool = {"name": "node1", "generation": 3, "resourceSliceCount": 1}
    listed = [{"name": device} for device in devices]
    spec = {"driver": driver, "nodeName": "node1", "pool": pool, "devices": listed}
    name = f"node1-{driver.partition('.')[0]}"
    await store.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})


def record(name: str, uid: ClaimUID, state: ClaimState, *parts: DriverPart, pods: Sequence[str] = ()) -> ClaimRecord:
    key = ClaimKey("default", ClaimName(name))
    return ClaimRecord(key, uid, state, parts, tuple(PodUID(f"uid-{pod}") for pod in pods), AGO)


def prepared(driver: DriverName, *devices: str) -> DriverPart:
    made = (PreparedDevice("node1", device, None, ("gpu",), (f"{driver}/gpu={device}",)) for device in devices)
    return DriverPart(driver, tuple(made))


def instance(driver: DriverName, *, preferred: bool = True, connected: bool = True) -> DriverRecord:
    endpoint = Path(f"/r/plugins/{driver}/{'dra' if preferred else 'old'}.sock")
    advertised = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth")
    return DriverRecord(driver, endpoint, Service.V1, advertised, HealthService.V1, AGO, connected, AGO, preferred)


@pytest.fixture
async def busy(store: Store, node: Node) -> None:
    """A claim in use, one whose driver never came, one without devices, one whose pod was not admitted to it."""
    node.pods = [pod(name) for name in ("train", "web", "late")]
    node.instances = [instance(GPU, preferred=False), instance(GPU)]
    node.wipes = {NIC: LATER}
    await put_slice(store, GPU, *(f"gpu-{i}" for i in range(6)))
    await put_slice(store, NIC, "nic-0")
    gpus = [(GPU, f"gpu-{i}") for i in range(4)]
    uid = await put_claim(store, "train-gpu", gpus, ["train"], labels={"app": "train"})
    await put_claim(store, "web-nic", [(NIC, "nic-0")], ["web"])
    await put_claim(store, "unborn")
    shared = await put_claim(store, "shared", [(GPU, "gpu-5")], ["other"])
    node.claims = [
        record("train-gpu", uid, ClaimState.PREPARED, prepared(GPU, *(id for _, id in gpus)), pods=["train"]),
        record("shared", shared, ClaimState.PREPARED, prepared(GPU, "gpu-5"), pods=["other"]),
    ]
    node.waiting = [
        wait("web", "web-nic", message="DRA driver nic.example.com is not registered", drivers=(NIC,)),
        wait("late", "shared", message="claim shared is not reserved for pod late"),
    ]


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.usefixtures("busy")
async def test_claims_show_their_devices_consumers_and_what_they_wait_for(devlet: Devlet) -> None:
    code, out, _ = await devlet("get", "claims")
    assert (code, lines(out)) == (
        0,
        [
            "NAME        STATE                DEVICES                                               NODE     CONSUMERS"
            "   PREPARED   AWAITS                                    SINCE   AGE",
            "shared      allocated,reserved   gpu.example.com/node1/gpu-5                           node1    other    "
            "   Prepared   reservation for pod late                  10d     0s",
            "train-gpu   allocated,reserved   gpu.example.com/node1/gpu-0,gpu-1,gpu-2 + 1 more...   node1    train    "
            "   Prepared   <none>                                    10d     0s",
            "unborn      pending              <none>                                                <none>   <none>   "
            "   <none>     allocation                                0s      0s",
            "web-nic     allocated,reserved   nic.example.com/node1/nic-0                           node1    web      "
            "   Waiting    driver nic.example.com (not registered)   10d     0s",
        ],
    )


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (["-A"], ["shared", "train-gpu", "unborn", "web-nic"]),
        (["-A", "-l", "app=train"], ["train-gpu"]),
        (["-A", "--field-selector", "metadata.name=unborn"], ["unborn"]),
        (["-A", "--sort-by", ".status.allocation.devices.results[0].device", "--show-labels"], None),
    ],
)
async def test_claims_are_chosen_and_sorted_as_other_objects(
    devlet: Devlet, flags: list[str], names: list[str] | None
) -> None:
    code, out, err = await devlet("get", "claims", *flags)
    assert code == 0, err
    header, *rows = (line.split() for line in lines(out))
    assert header[:3] == ["NAMESPACE", "NAME", "STATE"]
    assert [row[1] for row in rows] == (names or ["train-gpu", "shared", "web-nic", "unborn"])


@pytest.mark.usefixtures("busy")
async def test_wide_tables_leave_nothing_out(devlet: Devlet) -> None:
    _, out, _ = await devlet("get", "claim", "train-gpu", "-o", "wide", "--no-headers")
    full = ",".join(f"gpu.example.com/node1/gpu-{i}" for i in range(4))
    assert out.split() == [
        "train-gpu",
        "allocated,reserved",
        full,
        "node1",
        "train",
        "Prepared",
        "<none>",
        "10d",
        "0s",
    ]


@pytest.mark.usefixtures("busy")
async def test_for_programs_they_are_plain_claims_and_slices(devlet: Devlet) -> None:
    assert await devlet("get", "claims", "-o", "name") == await devlet("get", "resourceclaims", "-o", "name")
    assert await devlet("get", "claim/unborn", "-o", "json") == await devlet(
        "get", "resourceclaim/unborn", "-o", "json"
    )
    assert await devlet("get", "slices", "-o", "yaml") == await devlet("get", "resourceslices", "-o", "yaml")


@pytest.mark.usefixtures("busy")
async def test_the_full_names_have_the_tables_of_the_server(devlet: Devlet) -> None:
    _, out, _ = await devlet("get", "resourceclaims")
    assert lines(out)[0].split() == ["NAME", "STATE", "AGE"]
    _, out, _ = await devlet("get", "resourceslices")
    assert lines(out)[0].split() == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]


@pytest.mark.usefixtures("busy")
async def test_several_types_are_distinguished(devlet: Devlet) -> None:
    code, out, err = await devlet("get", "claims,drivers,slices", "-n", "default")
    assert code == 0, err
    firsts = [line.split()[0] for line in lines(out) if line]
    assert "resourceclaim.resource.k8s.io/unborn" in firsts
    assert "driver.devlet.dev/nic.example.com" in firsts
    assert "resourceslice.resource.k8s.io/node1-gpu" in firsts


async def test_a_claim_that_only_the_node_knows_is_shown(devlet: Devlet, node: Node, store: Store) -> None:
    """One that is still prepared though its object is gone, beside its successor, and one that was never made."""
    await put_claim(store, "again")
    failed = record("again", ClaimUID("old"), ClaimState.UNPREPARING, prepared(GPU, "gpu-0"))
    node.claims = [failed]
    node.instances = [instance(GPU, connected=False)]
    node.waiting = [wait("late", "nosuch", message="claim default/nosuch: not found")]
    code, out, _ = await devlet("get", "claims", "--no-headers")
    assert (code, [line.split("   ") for line in lines(re.sub(" {3,}", "   ", out))]) == (
        0,
        [
            ["again", "pending", *["<none>"] * 4, "allocation", "0s", "0s"],
            [
                "again",
                "gone",
                *["<none>"] * 3,
                "Unpreparing",
                "driver gpu.example.com (disconnected)",
                "10d",
                "<unknown>",
            ],
            ["nosuch", "missing", *["<none>"] * 3, "Waiting", "claim default/nosuch: not found", "10d", "<unknown>"],
        ],
    )
    code, out, err = await devlet("get", "claim", "nosuch", "--no-headers")
    assert (code, err) == (1, 'error: resourceclaims.resource.k8s.io "nosuch" not found\n')
    assert out.startswith("nosuch   missing")


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    ("flags", "shown"),
    [(["-w"], ["shared", "train-gpu", "unborn", "web-nic", "web-nic"]), (["--watch-only"], ["web-nic"])],
)
async def test_what_changes_is_followed(
    devlet: Devlet, node: Node, monkeypatch: pytest.MonkeyPatch, flags: list[str], shown: list[str]
) -> None:
    def arrive() -> None:
        node.instances = [*node.instances, instance(NIC)]

    def stop() -> None:
        raise KeyboardInterrupt

    steps: list[Callable[[], None]] = [lambda: None, arrive, stop]
    monkeypatch.setattr("devlet.cli.joined_tables.time.sleep", lambda seconds: steps.pop(0)())
    code, out, _ = await devlet("get", "claims", "--no-headers", *flags)
    assert code == 130
    assert [line.split()[0] for line in lines(out)] == shown
    assert "DRA driver nic.example.com is not registered" in lines(out)[-1]


@pytest.mark.usefixtures("busy")
async def test_slices_say_how_many_of_their_devices_are_used(devlet: Devlet) -> None:
    code, out, _ = await devlet("get", "slices")
    assert (code, lines(out)) == (
        0,
        [
            "NAME        NODE    DRIVER            POOL    GENERATION   DEVICES   USED   AGE",
            "node1-gpu   node1   gpu.example.com   node1   3            6         5      0s",
            "node1-nic   node1   nic.example.com   node1   3            1         1      0s",
        ],
    )
    _, out, _ = await devlet("get", "slice", "node1-gpu", "-o", "wide", "--no-headers")
    assert set(out.split()[-1].split(",")) == {"default/train-gpu", "default/shared"}


@pytest.mark.usefixtures("busy")
async def test_drivers_show_their_state_and_the_pods_that_need_them(devlet: Devlet) -> None:
    code, out, _ = await devlet("get", "drivers")
    assert (code, lines(out)) == (
        0,
        [
            "NAME                STATE       SERVICE   SLICES   DEVICES   CLAIMS   WAITING   WIPE     AGE",
            "gpu.example.com     Connected   v1        1        6         2        0         <none>   10d",
            "gpu.example.com~2   Standby     v1        <none>   <none>    <none>   <none>    <none>   10d",
            "nic.example.com     Missing     <none>    1        1         0        1         in 10d   <unknown>",
        ],
    )


@pytest.mark.usefixtures("busy")
async def test_prepared_claims_can_be_asked_for_themselves(devlet: Devlet) -> None:
    code, out, _ = await devlet("get", "pclaims")
    assert (code, lines(out)) == (
        0,
        [
            "NAME        STATE      DRIVERS           DEVICES                   PODS        WAITING   SINCE",
            "shared      Prepared   gpu.example.com   gpu-5                     uid-other   late      10d",
            "train-gpu   Prepared   gpu.example.com   gpu-0,gpu-1,gpu-2,gpu-3   train       <none>    10d",
            "web-nic     Waiting    <none>            <none>                    <none>      web       10d",
        ],
    )


@pytest.mark.usefixtures("busy")
async def test_everything_of_a_claim_is_described(devlet: Devlet) -> None:
    code, out, err = await devlet("describe", "claim", "train-gpu")
    assert code == 0, err
    assert lines(out)[7:] == [
        "State:        allocated,reserved",
        "Nodes:        node1",
        "Prepared:     Prepared, since TIME (10d ago)",
        "Awaits:       <none>",
        "Last error:   <none>",
        "Requests:",
        "  NAME   CLASS   COUNT   CAPACITY",
        "  gpu    gpu     4       <none>",
        "Devices:",
        "  REQUEST   DRIVER            POOL    DEVICE",
        *(f"  gpu       gpu.example.com   node1   gpu-{i}" for i in range(4)),
        "Used by:",
        "  RESOURCE   NAME    UID",
        "  pods       train   uid-train",
        "On this node:",
        "  DRIVER            PREPARED   DEVICE        REQUESTS   CDI DEVICES",
        *(f"  gpu.example.com   yes        node1/gpu-{i}   gpu        gpu.example.com/gpu=gpu-{i}" for i in range(4)),
        "Pods:",
        "  NAME    UID",
        "  train   uid-train",
        "Waiting:      <none>",
        "Events:       <none>",
    ]


@pytest.mark.usefixtures("busy")
async def test_a_server_that_is_not_a_devlet_shows_what_it_has(devlet: Devlet, root: Path) -> None:
    """The same API, reached as a cluster is: nobody there is asked for a node's views."""
    run = partial(devlet, target=["--kubeconfig", str(root / "kubeconfig")])
    code, out, err = await run("get", "claims", "--no-headers")
    assert code == 0, err
    assert [line.split()[0] for line in lines(out)] == ["shared", "train-gpu", "unborn", "web-nic"]
    assert all("<unknown>" in line for line in lines(out))
    assert "allocation" in lines(out)[2]
    code, out, err = await run("get", "slices", "--no-headers")
    assert (code, [line.split()[6] for line in lines(out)]) == (0, ["5", "1"]), err
    code, out, err = await run("describe", "claim", "train-gpu")
    assert (code, "Prepared:     <unknown>: ask the devlet on the claim's node" in lines(out)) == (0, True), err


def refused(code: int, reason: str) -> tuple[int, Document]:
    return code, {"kind": "Status", "code": code, "reason": reason, "message": "no"}


def test_who_may_not_see_claims_sees_slices_without_their_users(run: "Run", api: "API") -> None:
    spec = {"driver": GPU, "nodeName": "n1", "pool": {"name": "n1", "generation": 1}, "devices": [{"name": "a"}]}
    api.put("/apis/resource.k8s.io/v1/resourceslices/s", {"spec": spec})
    api.answers["GET", "/apis/resource.k8s.io/v1/resourceclaims"] = refused(403, "Forbidden")
    assert run("get", "slices", "-o", "wide", "--no-headers") == 0, run.err
    assert run.out.split()[:7] == ["s", "n1", GPU, "n1", "1", "1", "<unknown>"]
    assert run.out.split()[-1] == "<unknown>"


def test_a_devlet_without_the_view_shows_claims_all_the_same(run: "Run", api: "API") -> None:
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", {"spec": {}})
    view = "/apis/devlet.dev/v1alpha1/namespaces/default/preparedclaims"
    api.answers["GET", view] = refused(404, "NotFound")
    assert run("get", "claims", "--no-headers") == 0, run.err
    assert run.out.split()[:7] == ["c", "pending", "<none>", "<none>", "<none>", "<unknown>", "allocation"]


def test_drivers_are_asked_for_only_if_there_is_something_to_say_of_them(run: "Run", api: "API") -> None:
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", {"spec": {}})
    assert run("get", "claims") == 0, run.err
    asked = [path.partition("?")[0].rpartition("/")[2] for _, path, _ in api.requests]
    assert asked == ["api", "apis", "resourceclaims", "preparedclaims"]


def test_these_tables_import_little() -> None:
    code = "import sys; import devlet.cli.quick, devlet.cli.joined_tables; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {"click", "dataclasses", "msgspec", "ssl", "yaml", "logging", "anyio", "asyncio", "aiohttp"}
    assert not heavy & set(output.split())


def test_where_there_is_nothing_it_says_so(run: "Run") -> None:
    assert run("get", "claims") == 0
    assert (run.out, run.err) == ("", "No resources found in default namespace.\n")
    assert run("get", "slices") == 0
    assert (run.out, run.err) == ("", "No resources found\n")
