from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from devlet.node.claim_views import Known, contested_documents, driver_documents, prepared_claim_documents
from devlet.node.claims.records import (
    ClaimKey,
    ClaimRecord,
    ClaimState,
    ContainerClaim,
    Contested,
    DriverPart,
    PodWait,
)
from devlet.node.views import NodeViews
from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.container import Container
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod
from devlet.plugins.dra import DriverRecord, HealthService, Service

GPU, NIC = DriverName("gpu.example.com"), DriverName("nic.example.com")
SINCE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TEXT = "2026-01-02T03:04:05Z"
TRAIN = Pod(metadata=ObjectMeta(name="train", namespace="ns", uid="u1"))


def instance(endpoint: str = "/p/dra.sock", *, connected: bool = True, preferred: bool = True) -> DriverRecord:
    advertised = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
    return DriverRecord(
        GPU, Path(endpoint), Service.V1, advertised, HealthService.V1, SINCE, connected, SINCE, preferred
    )


def record(
    name: str = "c",
    *parts: DriverPart,
    uid: str = "cu",
    state: ClaimState = ClaimState.PREPARED,
    pods: tuple[str, ...] = (),
    since: datetime | None = SINCE,
    message: str = "",
) -> ClaimRecord:
    users = tuple(map(PodUID, pods))
    return ClaimRecord(ClaimKey("ns", ClaimName(name)), ClaimUID(uid), state, parts, users, since, message)


def wait(
    pod: str = "u1", *claims: str, since: datetime = SINCE, message: str = "not yet", drivers: Sequence[DriverName] = ()
) -> PodWait:
    keys = tuple(ClaimKey("ns", ClaimName(claim)) for claim in claims or ("c",))
    return PodWait(PodUID(pod), keys, since, message, tuple(drivers))


def slice_of(driver: str, devices: int) -> dict[str, Any]:
    return {"spec": {"driver": driver, "devices": [{"name": f"d{i}"} for i in range(devices)]}}


def states(documents: Sequence[dict[str, Any]]) -> dict[str, str]:
    return {d["metadata"]["name"]: d["status"]["state"] for d in documents}


def test_a_driver_shows_its_registration_and_its_counts() -> None:
    done, undone = DriverPart(GPU, ()), DriverPart(GPU, None)
    known = Known(
        claims=[record("c", done), record("d", undone, uid="du", state=ClaimState.PREPARING)],
        waits=[wait("u1", "d"), wait("u2", "c")],
        slices=[slice_of(GPU, 3), slice_of(GPU, 2)],
        wipes={GPU: SINCE},
    )
    [document] = driver_documents([instance()], known)
    assert document == {
        "kind": "Driver",
        "apiVersion": "devlet.dev/v1alpha1",
        "metadata": {"name": "gpu.example.com"},
        "spec": {
            "driver": "gpu.example.com",
            "endpoint": "/p/dra.sock",
            "service": "v1",
            "advertised": ["v1.DRAPlugin", "v1beta1.DRAPlugin"],
            "healthService": "v1.DRAResourceHealth",
        },
        "status": {
            "state": "Connected",
            "since": TEXT,
            "registered": TEXT,
            "slices": 2,
            "devices": 5,
            "claims": 2,
            "pods": 1,
            "wipeAt": TEXT,
        },
    }


def test_the_instance_that_is_called_has_the_plain_name_and_the_counts() -> None:
    old, new = instance("/p/old.sock", preferred=False), instance("/p/new.sock")
    first, second = driver_documents([old, new], Known(slices=[]))
    assert (first["metadata"]["name"], first["spec"]["endpoint"]) == ("gpu.example.com", "/p/new.sock")
    assert (second["metadata"]["name"], second["spec"]["endpoint"]) == ("gpu.example.com~2", "/p/old.sock")
    assert (first["status"]["slices"], "slices" in second["status"]) == (0, False)


@pytest.mark.parametrize(
    ("connected", "preferred", "state"),
    [
        (True, True, "Connected"),
        (True, False, "Standby"),
        (False, True, "Disconnected"),
        (False, False, "Disconnected"),
    ],
)
def test_the_state_of_an_instance(connected: bool, preferred: bool, state: str) -> None:
    [document] = driver_documents([instance(connected=connected, preferred=preferred)], Known())
    assert document["status"]["state"] == state


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (Known(slices=[slice_of(NIC, 1)]), "its slices are published for this node"),
        (Known(wipes={NIC: SINCE}), "its slices on this node are about to be deleted"),
        (Known(claims=[record("c", DriverPart(NIC, ()))]), "claims on this node have its devices"),
        (Known(waits=[wait(drivers=[NIC])]), "pods on this node wait for it"),
    ],
)
def test_a_driver_that_is_not_registered_is_shown_if_something_here_needs_it(known: Known, why: str) -> None:
    documents = driver_documents([instance()], known)
    assert states(documents) == {"gpu.example.com": "Connected", "nic.example.com": "Missing"}
    assert documents[1]["spec"] == {"driver": NIC}
    assert documents[1]["status"]["message"] == f"not registered on this node, but {why}"


def test_slices_are_not_counted_if_the_cluster_does_not_answer() -> None:
    [document] = driver_documents([instance()], Known())
    assert not {"slices", "devices"} & document["status"].keys()
    [document] = driver_documents([instance()], Known(slices=[]))
    assert (document["status"]["slices"], document["status"]["devices"]) == (0, 0)


def test_a_pod_that_waits_for_two_claims_of_a_driver_is_one_pod() -> None:
    undone = DriverPart(GPU, None)
    claims = [record(name, undone, uid=name, state=ClaimState.PREPARING) for name in ("c", "d")]
    known = Known(claims=claims, waits=[wait("u1", "c", "d", drivers=[GPU])])
    [document] = driver_documents([instance()], known)
    assert document["status"]["pods"] == 1


def test_a_driver_with_an_invalid_name_has_a_name_for_urls() -> None:
    known = Known(claims=[record("c", DriverPart(DriverName("a/b%c"), None))])
    [document] = driver_documents([], known)
    assert document["metadata"]["name"] == "a~2Fb~25c"


def test_a_claim_shows_what_each_driver_prepared_and_which_pods_use_it() -> None:
    device = PreparedDevice("n1", "gpu-0", "s1", ("a",), ("x/y=0",))
    parts = (DriverPart(NIC, None), DriverPart(GPU, (device, PreparedDevice("n1", "gpu-1"))))
    shown = record("c", *parts, state=ClaimState.FAILED, pods=("u9", "u1"), message="too hot")
    [document] = prepared_claim_documents([shown], [wait()], [TRAIN])
    assert document == {
        "kind": "PreparedClaim",
        "apiVersion": "devlet.dev/v1alpha1",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"uid": "cu"},
        "status": {
            "state": "Failed",
            "since": TEXT,
            "message": "too hot",
            "drivers": [
                {
                    "driver": GPU,
                    "prepared": True,
                    "devices": [
                        {
                            "pool": "n1",
                            "device": "gpu-0",
                            "shareID": "s1",
                            "requests": ["a"],
                            "cdiDevices": ["x/y=0"],
                        },
                        {"pool": "n1", "device": "gpu-1"},
                    ],
                },
                {"driver": NIC, "prepared": False},
            ],
            "pods": [{"uid": "u9"}, {"name": "train", "uid": "u1"}],
            "waiting": [{"pod": "train", "uid": "u1", "since": TEXT, "message": "not yet"}],
        },
    }


def test_since_is_unknown_for_a_state_from_before_a_restart() -> None:
    [document] = prepared_claim_documents([record(since=None)], [], [])
    assert not {"since", "message"} & document["status"].keys()


def test_a_claim_that_pods_only_wait_for_is_shown_since_the_first_wait() -> None:
    later = wait("u2", since=SINCE + timedelta(seconds=5), message="still not")
    [document] = prepared_claim_documents([], [later, wait()], [TRAIN])
    assert document["spec"] == {}
    status = document["status"]
    assert (status["state"], status["since"], status["message"]) == ("Waiting", TEXT, "not yet")
    assert [each.get("pod") for each in status["waiting"]] == ["train", None]
    assert (status["drivers"], status["pods"]) == ([], [])


def test_a_claim_that_is_being_unprepared_leaves_the_plain_name_to_its_successor() -> None:
    old = record("c", uid="old", state=ClaimState.UNPREPARING)
    documents = prepared_claim_documents([old, record("c", uid="new")], [wait()], [])
    assert {d["metadata"]["name"]: d["spec"]["uid"] for d in documents} == {"c": "new", "c~2": "old"}
    assert [len(d["status"]["waiting"]) for d in documents] == [1, 0]


def test_claims_are_sorted_by_namespace_and_natural_name() -> None:
    names = ["c-10", "c-2"]
    documents = prepared_claim_documents([record(name, uid=name) for name in names], [wait("u1", "c-1")], [])
    assert [d["metadata"]["name"] for d in documents] == ["c-1", "c-2", "c-10"]


class Nothing:
    """A node without devices, pods and plugins."""

    def active(self) -> list[Pod]:
        return [TRAIN]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not asked")


class Claims:
    def records(self) -> list[ClaimRecord]:
        return [record("c", DriverPart(NIC, ()), pods=("u1",))]

    def waits(self) -> list[PodWait]:
        return [wait("u1", "d")]

    async def release(self, key: ClaimKey, *, force: bool) -> None:
        raise AssertionError("nothing is released here")

    def container_claims(self, pod: Pod, container: Container) -> list[ContainerClaim]:
        return []


class Drivers:
    def records(self) -> list[DriverRecord]:
        return [instance()]


class Slices:
    async def slices(self) -> list[dict[str, Any]]:
        return [slice_of(GPU, 4)]

    def records(self) -> dict[DriverName, datetime]:
        return {NIC: SINCE}


@pytest.mark.anyio
async def test_a_node_shows_what_its_managers_know() -> None:
    views = NodeViews(Nothing(), Nothing(), claims=Claims(), drivers=Drivers(), slices=Slices())
    drivers = await views.drivers()
    assert states(drivers) == {"gpu.example.com": "Connected", "nic.example.com": "Missing"}
    assert drivers[0]["status"]["devices"] == 4
    assert drivers[1]["status"]["wipeAt"] == TEXT
    claims = views.prepared_claims()
    assert states(claims) == {"c": "Prepared", "d": "Waiting"}
    assert claims[0]["status"]["pods"] == [{"name": "train", "uid": "u1"}]


@pytest.mark.anyio
async def test_a_node_without_claims_and_drivers_shows_none() -> None:
    views = NodeViews(Nothing(), Nothing())
    assert (await views.drivers(), views.prepared_claims()) == ([], [])


def contested(device: str, holder: str, claim: str, since: datetime = SINCE) -> PodWait:
    key = ClaimKey("ns", ClaimName(claim))
    return PodWait(PodUID(claim), (key,), since, "not yet", (), (Contested(device, f"ns/{holder}", f"ns/{claim}"),))


def test_a_contested_device_is_shown_with_all_its_claims() -> None:
    later = contested("gpu.example.com/n1/gpu-0", "a", "c", SINCE + timedelta(seconds=1))
    [document] = contested_documents([later, contested("gpu.example.com/n1/gpu-0", "a", "b"), wait()])
    assert document["kind"] == "Device" and document["metadata"] == {"name": "gpu.example.com:n1:gpu-0"}
    assert document["spec"] == {"driver": "gpu.example.com", "pool": "n1", "id": "gpu-0"}
    assert document["status"] == {
        "state": "Contested",
        "since": TEXT,
        "claims": ["ns/a"],
        "waiting": ["ns/b", "ns/c"],
    }


def test_a_pool_may_have_slashes() -> None:
    [document] = contested_documents([contested("gpu.example.com/rack/n1/gpu-0", "a", "b")])
    assert document["spec"] == {"driver": "gpu.example.com", "pool": "rack/n1", "id": "gpu-0"}
