from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.node.claims.records import ClaimKey, ContainerClaim, DriverPart
from devlet.node.devices.container_options import ContainerOptions
from devlet.node.devices.records import DeviceRecord, DeviceState
from devlet.node.holder_views import Holders, NoClaims
from devlet.objects.identifiers import ClaimName, ContainerName, DeviceID, DriverName, PodUID, ResourceName
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.container import Container
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec, PodStatus
from devlet.runtime.containers import Config
from devlet.runtime.description import Description, Wanted

pytestmark = pytest.mark.anyio

GPU = ResourceName("a.com/gpu")
SINCE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID, MAIN = PodUID("u1"), ContainerName("main")
POD = Pod(
    metadata=ObjectMeta(name="train", namespace="ns", uid="u1", labels={"app": "x"}),
    spec=PodSpec(
        init_containers=(Container(name=ContainerName("init")),),
        containers=(Container(name=ContainerName("idle")), Container(name=MAIN)),
    ),
    status=PodStatus(phase="Running"),
)
HELD = DeviceRecord(GPU, DeviceID("g0"), "Healthy", (0, 1), DeviceState.HELD, UID, MAIN, SINCE)
FREE = DeviceRecord(GPU, DeviceID("g1"), "Unhealthy", (), DeviceState.FREE)
OPTIONS = ContainerOptions(
    env=(("A", "1"),),
    mounts=(Mount("/c", "/h", True),),
    devices=(DeviceNode("/dev/c", "/dev/h", "rw"),),
    annotations=(("k", "v"),),
    cdi_devices=("a.com/gpu=0",),
    conflicts=("a.com/nic wanted A",),
)
NIC = PreparedDevice("pool", "nic-0", "share", ("net",), ("b.com/nic=0",))
CLAIM = ContainerClaim(
    "net",
    "fast",
    ClaimKey("ns", ClaimName("train-net")),
    (
        DriverPart(DriverName("nic.b.com"), (NIC, PreparedDevice("pool", "nic-1", cdi_devices=("b.com/nic=1",)))),
        DriverPart(DriverName("other.b.com"), ()),
        DriverPart(DriverName("late.b.com"), None),
    ),
)


class Devices:
    def __init__(self, *records: DeviceRecord, held: Sequence[str] = ("init", "main")) -> None:
        self._records = records
        self._held = held

    def device_records(self) -> Sequence[DeviceRecord]:
        return self._records

    def container_devices(
        self, pod: PodUID, container: ContainerName
    ) -> dict[ResourceName, dict[DeviceID, tuple[int, ...]]]:
        return {GPU: {DeviceID("g10"): (), DeviceID("g0"): (0, 1)}} if pod == UID and container in self._held else {}

    def options(self, pod: PodUID, container: ContainerName) -> ContainerOptions | None:
        return OPTIONS if pod == UID and container == MAIN and container in self._held else None


class Claims:
    def __init__(self, *claims: ContainerClaim) -> None:
        self._claims = claims

    def container_claims(self, pod: Pod, container: Container) -> Sequence[ContainerClaim]:
        return self._claims if container.name == MAIN else ()


class Runtime:
    """A runtime that remembers its arguments."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self.asked: list[Wanted] = []

    async def described(self, wanted: Sequence[Wanted]) -> Sequence[Description]:
        self.asked += wanted
        return [self._description if each.config else Description() for each in wanted]


async def containers(holders: Holders) -> list[dict[str, Any]]:
    [document] = await holders.documents([POD])
    found: list[dict[str, Any]] = document["status"]["containers"]
    return found


async def test_a_holder_shows_the_devices_of_its_containers() -> None:
    [document] = await Holders(Devices(HELD, FREE)).documents([POD])
    assert document["metadata"] == {"name": "train", "namespace": "ns", "labels": {"app": "x"}}
    assert document["spec"] == {"podUID": "u1"}
    status = document["status"]
    assert (status["phase"], status["since"]) == ("Running", "2026-01-02T03:04:05Z")
    devices = [{"resource": "a.com/gpu", "ids": ["g0", "g10"]}]
    assert status["containers"] == [
        {"name": "init", "devices": devices},
        {
            "name": "main",
            "devices": devices,
            "options": {
                "env": [{"name": "A", "value": "1"}],
                "mounts": [{"containerPath": "/c", "hostPath": "/h", "readOnly": True}],
                "devices": [{"containerPath": "/dev/c", "hostPath": "/dev/h", "permissions": "rw"}],
                "annotations": {"k": "v"},
                "cdiDevices": ["a.com/gpu=0"],
                "conflicts": ["a.com/nic wanted A"],
            },
        },
    ]


async def test_a_pod_without_devices_and_claims_is_not_a_holder() -> None:
    assert await Holders(Devices(held=())).documents([POD]) == []


async def test_holders_are_sorted_by_natural_name() -> None:
    def pod(name: str) -> Pod:
        return Pod(
            metadata=ObjectMeta(name=name, namespace="ns", uid=name), spec=PodSpec(containers=(Container(name=MAIN),))
        )

    holders = Holders(Devices(held=()), Claims(CLAIM))
    found = await holders.documents([pod("p10"), pod("p2")])
    assert [document["metadata"]["name"] for document in found] == ["p2", "p10"]


async def test_since_is_unknown_for_what_was_held_before_a_restart() -> None:
    before = DeviceRecord(GPU, DeviceID("g2"), "Healthy", (), DeviceState.HELD, UID, MAIN, None)
    [document] = await Holders(Devices(HELD, before)).documents([POD])
    assert "since" not in document["status"]


async def test_a_pod_that_has_only_claims_is_a_holder() -> None:
    [main] = await containers(Holders(Devices(held=()), Claims(CLAIM)))
    about = {"name": "net", "claim": "train-net", "request": "fast"}
    nic = {"driver": "nic.b.com", "pool": "pool"}
    assert main == {
        "name": "main",
        "claims": [
            {**about, **nic, "device": "nic-0", "shareID": "share", "cdiDevices": ["b.com/nic=0"]},
            {**about, **nic, "device": "nic-1", "cdiDevices": ["b.com/nic=1"]},
            {**about, "driver": "late.b.com"},
        ],
    }


async def test_a_claim_without_a_device_for_the_container_is_shown() -> None:
    empty = ContainerClaim("", "", ClaimKey("ns", ClaimName("extended")), (DriverPart(DriverName("d"), ()),))
    [main] = await containers(Holders(Devices(held=()), Claims(empty)))
    assert main["claims"] == [{"claim": "extended"}]


async def test_a_container_shows_the_additions_to_its_oci_spec_with_notes() -> None:
    added = {"process": {"env": ["A=1"]}}
    runtime = Runtime(Description({"ociVersion": "x", **added}, added, ("no device node",)))
    init, main = await containers(Holders(Devices(HELD), Claims(CLAIM), runtime))
    assert (main["oci"], main["notes"]) == (added, ["no device node"])
    assert not {"oci", "notes"} & init.keys()


@pytest.mark.spec("DN-7.1.1")
async def test_the_cdi_devices_of_claims_come_first() -> None:
    runtime = Runtime(Description())
    await Holders(Devices(HELD), Claims(CLAIM), runtime).documents([POD])
    configs = {each.container.name: each.config for each in runtime.asked}
    expected = Config(
        OPTIONS.env, OPTIONS.mounts, OPTIONS.devices, OPTIONS.annotations, ("b.com/nic=0", "b.com/nic=1", "a.com/gpu=0")
    )
    assert configs == {"init": None, "main": expected}


async def test_without_a_claim_manager_there_are_no_claims() -> None:
    assert NoClaims().container_claims(POD, POD.spec.containers[0]) == ()
