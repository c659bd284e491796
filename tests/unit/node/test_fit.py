from typing import Any

import pytest

from devlet.node.fit import added, amounts, lacking, less, mismatch, raised, requests
from devlet.node.reports import Rejection
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import ResourceName
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod

GPU = "vendor.com/gpu"
NODE = amounts({"cpu": "2", "memory": "1Gi", "pods": "3", GPU: "2"})


def container(name: str = "main", **wanted: str) -> Document:
    amounts = {key.replace("gpu", GPU): value for key, value in wanted.items()}
    return {"name": name, "resources": {"requests": amounts, "limits": amounts}}


def pod(*containers: Document, init: list[Document] | None = None, status: Document | None = None, **spec: Any) -> Pod:
    spec |= {"containers": list(containers) or [container()], "initContainers": init or []}
    return view(Pod, {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status or {}})


def texts(one: Pod) -> dict[str, str]:
    return {name: str(amount) for name, amount in requests(one).items() if name != "pods"}


def test_containers_that_run_together_are_added_up() -> None:
    assert texts(pod(container(cpu="500m"), container("b", cpu="1", gpu="1"))) == {"cpu": "1500m", GPU: "1"}


def test_init_containers_count_one_at_a_time() -> None:
    init = [container("i1", cpu="3"), container("i2", cpu="2")]
    assert texts(pod(container(cpu="1"), init=init)) == {"cpu": "3"}


def test_sidecars_count_all_the_time() -> None:
    sidecar = container("s", cpu="1") | {"restartPolicy": "Always"}
    assert texts(pod(container(cpu="1"), init=[sidecar, container("i", cpu="3")])) == {"cpu": "4"}
    assert texts(pod(container(cpu="1"), init=[container("i", cpu="1500m"), sidecar])) == {"cpu": "2"}


def test_the_pods_own_resources_and_its_overhead_count() -> None:
    one = pod(container(cpu="1", gpu="1"), resources={"requests": {"cpu": "3"}}, overhead={"cpu": "250m"})
    assert texts(one) == {"cpu": "3250m", GPU: "1"}


def test_a_pod_that_fits_is_not_rejected() -> None:
    assert lacking(pod(container(cpu="1", gpu="1")), amounts({"cpu": "1", GPU: "1", "pods": "2"}), NODE) is None


@pytest.mark.parametrize(
    ("wanted", "used", "reason", "numbers"),
    [
        ({"cpu": "1500m"}, {"cpu": "1"}, "OutOfcpu", "cpu, requested: 1500, used: 1000, capacity: 2000"),
        ({"memory": "2Gi"}, {}, "OutOfmemory", "memory, requested: 2147483648, used: 0, capacity: 1073741824"),
        ({}, {"pods": "3"}, "OutOfpods", "pods, requested: 1, used: 3, capacity: 3"),
        ({"gpu": "2"}, {GPU: "1"}, f"OutOf{GPU}", f"{GPU}, requested: 2, used: 1, capacity: 2"),
    ],
)
def test_the_missing_resource_is_named_with_its_amounts(
    wanted: dict[str, str], used: dict[str, str], reason: str, numbers: str
) -> None:
    expected = Rejection(reason, f"Node didn't have enough resource: {numbers}")
    assert lacking(pod(container(**wanted)), amounts(used), NODE) == expected


def test_a_native_resource_that_the_node_does_not_have_is_missing() -> None:
    found = lacking(pod(container(**{"hugepages-2Mi": "2Mi"})), {}, NODE)
    assert found is not None and found.reason == "OutOfhugepages-2Mi"


def test_an_extended_resource_that_the_node_does_not_know_is_not_counted() -> None:
    assert lacking(pod(container(**{"other.com/x": "9"})), {}, NODE) is None


@pytest.mark.spec("DP-8.34")
def test_a_resource_that_a_claim_provides_is_not_counted() -> None:
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": "r"}
    claimed = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [mapping]}}
    assert lacking(pod(container(gpu="9"), status=claimed), {}, NODE) is None
    assert lacking(pod(container(gpu="9")), {}, NODE) is not None


@pytest.mark.spec("DP-8.35")
def test_allocatable_is_raised_to_what_is_allocated_and_never_lowered() -> None:
    allocated = {ResourceName(GPU): 1, ResourceName("vendor.com/fpga"): 2}
    found = raised(amounts({GPU: "2", "vendor.com/fpga": "1", "cpu": "2"}), allocated)
    assert found == amounts({GPU: "2", "vendor.com/fpga": "2", "cpu": "2"})
    assert raised({}, allocated) == amounts({GPU: "1", "vendor.com/fpga": "2"})


def test_amounts_can_be_added_and_subtracted() -> None:
    one, other = amounts({"cpu": "1", GPU: "1"}), amounts({"cpu": "500m", "memory": "1"})
    assert less(added(one, other), other) == one
    assert less(added({}, other), other) == {}


def node(**labels: str) -> Node:
    return view(Node, {"metadata": {"name": "n1", "labels": labels}})


def test_a_pod_whose_selector_excludes_the_node_is_rejected() -> None:
    selecting = pod(nodeSelector={"disk": "ssd"})
    assert mismatch(selecting, node(disk="ssd")) is None
    found = mismatch(selecting, node())
    assert found is not None and found.reason == "NodeAffinity"


def test_a_pod_whose_affinity_excludes_the_node_is_rejected() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    choosy = pod(affinity={"nodeAffinity": required})
    assert mismatch(choosy, node(zone="a")) is None
    assert mismatch(choosy, node(zone="b")) is not None
    assert mismatch(pod(), node()) is None
