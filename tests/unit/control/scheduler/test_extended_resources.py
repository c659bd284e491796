from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.control.scheduler.extended_resources import (
    UNSTORED_NAME,
    ExtendedClaim,
    classes_by_resource,
    existing,
    extended_claim,
    provided,
    wanted,
)
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import ClaimName, DeviceClassName, ResourceName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.pod import Pod
from devlet.objects.validation.claim import check_spec

GPU, NIC = ResourceName("example.com/gpu"), ResourceName("example.com/nic")
IMPLICIT = ResourceName("deviceclass.resource.kubernetes.io/fast")
CLASSES = {GPU: DeviceClassName("gpus"), NIC: DeviceClassName("nics"), IMPLICIT: DeviceClassName("fast")}


def device_class(name: str, resource: str | None = None, created: str | None = None) -> DeviceClass:
    return view(
        DeviceClass,
        {"metadata": {"name": name, "creationTimestamp": created}, "spec": {"extendedResourceName": resource}},
    )


def container(name: str, sidecar: bool = False, **requests: int | str) -> Document:
    short = {"gpu": GPU, "nic": NIC, "implicit": IMPLICIT}
    amounts = {short.get(key, key): str(amount) for key, amount in requests.items()}
    made: Document = {"name": name, "image": "x", "resources": {"requests": amounts, "limits": amounts}}
    return made | ({"restartPolicy": "Always"} if sidecar else {})


def pod(*containers: Document, init: list[Document] | None = None) -> Pod:
    metadata = {"name": "p", "namespace": "ns", "uid": "pod-uid"}
    return view(Pod, {"metadata": metadata, "spec": {"containers": list(containers), "initContainers": init or []}})


def made(one: Pod, *resources: ResourceName) -> ExtendedClaim:
    found = extended_claim(one, resources or (GPU,), CLASSES)
    assert found is not None
    return found


def requests(found: ExtendedClaim) -> dict[str, tuple[str, int]]:
    return {
        each.name: (each.exactly.device_class_name, each.exactly.count)
        for each in found.claim.spec.devices.requests
        if each.exactly
    }


def mappings(found: ExtendedClaim) -> list[tuple[str, str, str]]:
    return [(each.container_name, each.resource_name, each.request_name) for each in found.mappings]


# Which class, and where


@pytest.mark.spec("DA-5.9a")
def test_a_class_provides_its_resource_name_and_an_implicit_one() -> None:
    found = classes_by_resource([device_class("fast", GPU), device_class("slow")])
    assert found == {
        GPU: "fast",
        IMPLICIT: "fast",
        "deviceclass.resource.kubernetes.io/slow": "slow",
    }


@pytest.mark.spec("DA-5.9a")
@pytest.mark.parametrize("order", [1, -1])
def test_of_several_classes_for_a_resource_the_newest_counts_then_the_first_by_name(
    order: int,
) -> None:
    old, new, twin = (
        device_class("a", GPU, "2026-01-01T00:00:00Z"),
        device_class("c", GPU, "2026-01-01T00:00:01Z"),
        device_class("b", GPU, "2026-01-01T00:00:01Z"),
    )
    assert classes_by_resource([old, new][::order])[GPU] == "c"
    assert classes_by_resource([old, new, twin][::order])[GPU] == "b"
    assert len(classes_by_resource([old, new, twin])) == 4  # each keeps the name made of its own


@pytest.mark.spec("DA-5.9b")
def test_dra_provides_resources_of_classes_that_the_node_does_not_offer() -> None:
    asked = {ResourceName("cpu"): 100, GPU: 1, NIC: 2, IMPLICIT: 1, ResourceName("other.com/x"): 1}
    found = wanted(asked, CLASSES)
    assert found == {GPU, NIC, IMPLICIT}
    assert provided(found, {GPU: 8, NIC: 0}) == {NIC, IMPLICIT}
    assert provided(frozenset(), {}) == frozenset()


# Which requests


@pytest.mark.spec("DA-5.9e")
def test_requests_are_named_by_the_indexes_of_container_and_resource() -> None:
    one = pod(container("a", cpu=1, gpu=2, nic=1), container("b", nic=3))
    found = made(one, NIC, GPU)
    assert requests(found) == {
        "container-0-request-1": ("gpus", 2),
        "container-0-request-2": ("nics", 1),
        "container-1-request-0": ("nics", 3),
    }
    assert mappings(found) == [
        ("a", GPU, "container-0-request-1"),
        ("a", NIC, "container-0-request-2"),
        ("b", NIC, "container-1-request-0"),
    ]


@pytest.mark.spec("DA-5.9e")
def test_requests_are_sorted_by_name() -> None:
    found = made(pod(*(container(f"c{i}", gpu=1) for i in range(11))))
    assert list(requests(found))[:4] == [f"container-{i}-request-0" for i in (0, 1, 10, 2)]


@pytest.mark.spec("DA-5.9f")
def test_an_init_container_reuses_the_devices_of_later_containers() -> None:
    found = made(pod(container("main", gpu=2), init=[container("i", gpu=1)]))
    assert requests(found) == {"container-1-request-0": ("gpus", 2)}
    assert mappings(found) == [("main", GPU, "container-1-request-0"), ("i", GPU, "container-1-request-0")]


@pytest.mark.spec("DA-5.9f")
def test_init_containers_share_one_request_for_missing_devices() -> None:
    init = [container("i0", gpu=3), container("i1", gpu=6), container("i2", gpu=4)]
    found = made(pod(container("main", gpu=2), init=init))
    assert requests(found) == {"container-1-request-0": ("gpus", 4), "container-3-request-0": ("gpus", 2)}
    assert mappings(found) == [
        ("main", GPU, "container-3-request-0"),
        *(
            (name, GPU, request)
            for name in ("i0", "i1", "i2")
            for request in ("container-3-request-0", "container-1-request-0")
        ),
    ]


@pytest.mark.spec("DA-5.9f")
def test_only_init_containers_before_a_sidecar_reuse_its_devices() -> None:
    init = [container("i0", gpu=1), container("s", sidecar=True, gpu=1), container("i2", gpu=1)]
    found = made(pod(container("main"), init=init))
    assert requests(found) == {"container-1-request-0": ("gpus", 1), "container-2-request-0": ("gpus", 1)}
    assert mappings(found) == [
        ("s", GPU, "container-1-request-0"),
        ("i0", GPU, "container-1-request-0"),
        ("i2", GPU, "container-2-request-0"),
    ]


def test_there_is_no_claim_without_requests() -> None:
    assert extended_claim(pod(container("a", gpu=0)), (GPU,), CLASSES) is None
    assert extended_claim(pod(container("a", gpu=1)), (), CLASSES) is None


counts = st.integers(0, 4)


@given(st.lists(st.tuples(counts, st.booleans()), max_size=5), st.lists(counts, min_size=1, max_size=3))
def test_each_container_has_enough_devices_and_concurrent_ones_share_none(
    init: list[tuple[int, bool]], main: list[int]
) -> None:
    inits = [container(f"i{i}", sidecar, gpu=n) for i, (n, sidecar) in enumerate(init)]
    one = pod(*(container(f"c{i}", gpu=n) for i, n in enumerate(main)), init=inits)
    found = extended_claim(one, (GPU,), CLASSES)
    size = {name: count for name, (_, count) in requests(found).items()} if found else {}
    uses: dict[str, list[str]] = {each.name: [] for each in one.containers}
    for name, _, request in mappings(found) if found else []:
        uses[name].append(request)
    for each in one.containers:
        asked = int(each.resources.requests[GPU])
        assert sum(size[request] for request in uses[each.name]) >= asked
        assert bool(uses[each.name]) == bool(asked)
        assert len(set(uses[each.name])) == len(uses[each.name])
    lasting = [each.name for each in one.spec.init_containers if each.is_sidecar] + [
        c.name for c in one.spec.containers
    ]
    taken = [request for name in lasting for request in uses[name]]
    assert len(set(taken)) == len(taken)
    for i, (_, sidecar) in enumerate(init):
        before = {request for each in one.spec.init_containers[:i] if each.is_sidecar for request in uses[each.name]}
        assert sidecar or not before & set(uses[f"i{i}"])


# The claim


@pytest.mark.spec("DA-5.9g")
def test_a_provisional_claim_has_a_unique_name_and_uid() -> None:
    claim = made(pod(container("a", gpu=1))).claim
    assert (claim.name, claim.metadata.namespace) == (UNSTORED_NAME, "ns") == ("<extended-resources>", "ns")
    assert claim.uid == made(pod(container("a", gpu=1))).claim.uid != ""


@pytest.mark.spec("DA-5.9g")
def test_the_stored_claim_has_its_owner_and_the_finalizer() -> None:
    one = pod(container("a", gpu=2))
    document = made(one).document(one)
    assert document["metadata"] == {
        "generateName": "p-extended-resources-",
        "namespace": "ns",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pod-uid", "controller": True}],
    }
    exactly = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 2}
    assert document["spec"] == {"devices": {"requests": [{"name": "container-0-request-0", "exactly": exactly}]}}
    assert list(check_spec(document["spec"], "spec", lambda *_: [])) == []


@pytest.mark.spec("DA-5.9g")
def test_the_pods_status_maps_requests_to_containers() -> None:
    one = pod(container("a", gpu=2))
    mapping = {"containerName": "a", "resourceName": GPU, "requestName": "container-0-request-0"}
    assert made(one).pod_status(one, ClaimName("p-extended-resources-x")) == {
        "metadata": {"uid": "pod-uid"},
        "status": {
            "extendedResourceClaimStatus": {
                "resourceClaimName": "p-extended-resources-x",
                "requestMappings": [mapping],
            }
        },
    }


@pytest.mark.spec("DA-5.9h")
def test_a_claim_of_an_earlier_attempt_is_found_by_owner_and_annotation() -> None:
    one = pod(container("a", gpu=2))
    document = made(one).document(one)

    def stored(**metadata: Any) -> ResourceClaim:
        return view(ResourceClaim, document | {"metadata": document["metadata"] | metadata})

    other = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "other", "controller": True}
    mine = stored()
    assert existing(one, [stored(annotations={}), stored(ownerReferences=[other]), mine]) is mine
    assert existing(one, [stored(namespace="elsewhere")]) is None
