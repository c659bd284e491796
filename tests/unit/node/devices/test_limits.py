"""The number of devices that pods and containers request."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.node.devices import limits
from devlet.objects.documents import view
from devlet.objects.identifiers import ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod

GPU, NIC = ResourceName("example.com/gpu"), ResourceName("example.com/nic")


def container(name: str, *, sidecar: bool = False, **wanted: int | str) -> dict[str, Any]:
    quantities = {f"example.com/{resource}": quantity for resource, quantity in wanted.items()}
    found: dict[str, Any] = {"name": name, "resources": {"limits": quantities}}
    return found | {"restartPolicy": "Always"} if sidecar else found


def pod(
    regular: list[dict[str, Any]], init: list[dict[str, Any]] | None = None, backed: list[tuple[str, str]] | None = None
) -> Pod:
    mappings = [{"containerName": name, "resourceName": resource} for name, resource in backed or []]
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": mappings}} if backed else {}
    return view(Pod, {"spec": {"initContainers": init or [], "containers": regular}, "status": status})


@pytest.mark.parametrize(
    ("quantity", "number"), [("1", 1), (2, 2), ("1500m", 2), ("1m", 1), ("1k", 1000), ("2e1", 20), (0.5, 1)]
)
def test_a_limit_is_rounded_up(quantity: str | int | float, number: int) -> None:
    wanted = view(Container, {"name": "c", "resources": {"limits": {GPU: quantity}}})
    assert limits.of_container(wanted) == {GPU: number}


@pytest.mark.parametrize("quantity", ["0", 0, "-1"])
def test_limits_of_zero_are_ignored(quantity: str | int) -> None:
    assert limits.of_container(view(Container, {"resources": {"limits": {GPU: quantity}}})) == {}


def test_requests_and_native_resources_are_not_devices() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "2Mi", NIC: "1"}, "requests": {GPU: "1"}}
    assert limits.of_container(view(Container, {"resources": resources})) == {NIC: 1}


def test_resources_that_a_claim_provides_are_not_plugin_resources() -> None:
    asked = pod([container("a", gpu=1, nic=1), container("b", gpu=1)], backed=[("a", GPU)])
    claimed = limits.claimed(asked)
    assert claimed == {("a", GPU)}
    assert [limits.of_container(each, claimed) for each in asked.containers] == [{NIC: 1}, {GPU: 1}]
    assert limits.of_container(asked.containers[0]) == {GPU: 1, NIC: 1}


def test_a_pod_without_such_claims_has_none() -> None:
    assert limits.claimed(pod([container("a", gpu=1)])) == frozenset()


@pytest.mark.spec("DP-9.32")
def test_resources_that_a_claim_provides_do_not_count_for_the_pod() -> None:
    assert limits.of_pod(pod([container("a", gpu=1), container("b", gpu=2)], backed=[("a", GPU)])) == {GPU: 2}


@pytest.mark.spec("DP-8.46")
@pytest.mark.parametrize(
    ("init", "regular", "expected"),
    [
        pytest.param([3, 1], [], 3, id="the largest init container"),
        pytest.param([], [1, 2], 3, id="the sum of the others"),
        pytest.param([4], [1, 2], 4, id="an init container wants more"),
        pytest.param([2], [1, 2], 3, id="the others want more"),
    ],
)
def test_a_pod_requests_its_peak(init: list[int], regular: list[int], expected: int) -> None:
    asked = pod(
        [container(f"c{n}", gpu=count) for n, count in enumerate(regular)],
        [container(f"i{n}", gpu=count) for n, count in enumerate(init)],
    )
    assert limits.of_pod(asked) == {GPU: expected}


def test_resources_are_counted_separately() -> None:
    asked = pod([container("a", gpu=1), container("b", nic=1)], [container("i", nic=2)])
    assert limits.of_pod(asked) == {GPU: 1, NIC: 2}


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        pytest.param([container("s", sidecar=True, gpu=2)], 3, id="a sidecar runs beside the others"),
        pytest.param([container("s", sidecar=True, gpu=2), container("i", gpu=2)], 4, id="and beside later init ones"),
        pytest.param([container("i", gpu=2), container("s", sidecar=True, gpu=2)], 3, id="but not beside earlier ones"),
    ],
)
def test_devices_of_sidecars_add_up(init: list[dict[str, Any]], expected: int) -> None:
    assert limits.of_pod(pod([container("c", gpu=1)], init)) == {GPU: expected}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=5), st.lists(st.integers(0, 5), max_size=4))
def test_the_request_of_a_pod_is_enough_at_any_time(init: list[tuple[bool, int]], regular: list[int]) -> None:
    asked = pod(
        [container(f"c{n}", gpu=count) for n, count in enumerate(regular)],
        [container(f"i{n}", sidecar=sidecar, gpu=count) for n, (sidecar, count) in enumerate(init)],
    )
    moments = [sum(count for sidecar, count in init if sidecar) + sum(regular)]
    for n, (_, own) in enumerate(init):
        moments.append(own + sum(count for sidecar, count in init[:n] if sidecar))
    assert limits.of_pod(asked).get(GPU, 0) == max(moments)


def test_only_an_init_container_that_ends_is_plain() -> None:
    asked = pod([container("c")], [container("i"), container("s", sidecar=True)])
    assert [limits.is_plain_init(asked, each) for each in asked.containers] == [True, False, False]
