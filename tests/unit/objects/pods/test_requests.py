from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import ResourceName
from devlet.objects.pods.requests import added, amounts, claimed, larger, less, requests, vector, whole
from devlet.objects.types.pod import Pod
from devlet.objects.values.quantity import Quantity

GPU = ResourceName("vendor.com/gpu")
NAMES = ("cpu", "memory", "hugepages-2Mi", GPU)
TEXTS = ("0", "1", "3", "100m", "250m", "1500u", "7n", "64Mi", "1e3", 2, 0.5)


def container(name: str = "main", **wanted: str) -> Document:
    return {"name": name, "resources": {"requests": {key.replace("gpu", GPU): text for key, text in wanted.items()}}}


def pod(
    *containers: Document, init: list[Document] | None = None, claims: Sequence[tuple[str, str]] = (), **spec: Any
) -> Pod:
    spec |= {"containers": list(containers) or [container()], "initContainers": init or []}
    mappings = [{"containerName": owner, "resourceName": name, "requestName": "r"} for owner, name in claims]
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": mappings}} if claims else {}
    return view(Pod, {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status})


def test_cpu_is_counted_in_thousandths_and_all_else_in_units() -> None:
    assert vector(pod(container(cpu="1.5", memory="1Ki", gpu="2"))) == {"cpu": 1500, "memory": 1024, GPU: 2}


def test_zero_amounts_are_not_requested() -> None:
    assert vector(pod(container(cpu="0", memory="1"))) == {"memory": 1}
    assert vector(pod(container(cpu="0"), container("b", gpu="0"))) == {}


def test_only_the_sum_is_rounded_and_upwards() -> None:
    assert vector(pod(container(cpu="100u"))) == {"cpu": 1}
    assert vector(pod(container(cpu="500u"), container("b", cpu="500u"))) == {"cpu": 1}


def test_init_containers_need_their_place_one_after_the_other_and_sidecars_keep_theirs() -> None:
    init = [container("i1", cpu="3"), container("i2", cpu="2")]
    assert vector(pod(container(cpu="1"), init=init)) == {"cpu": 3000}
    sidecar = container("s", cpu="1") | {"restartPolicy": "Always"}
    assert vector(pod(container(cpu="1"), init=[sidecar, container("i", cpu="3")])) == {"cpu": 4000}
    assert vector(pod(container(cpu="1"), init=[container("i", cpu="1500m"), sidecar])) == {"cpu": 2000}


def test_the_pods_own_resources_replace_what_its_containers_ask_for_and_its_overhead_is_added() -> None:
    one = pod(container(cpu="1", gpu="1"), resources={"requests": {"cpu": "3", GPU: "9"}}, overhead={"cpu": "250m"})
    assert vector(one) == {"cpu": 3250, GPU: 1}


def test_a_claim_provides_for_the_containers_that_it_names() -> None:
    one = pod(container(gpu="2"), container("b", gpu="3"), claims=[("main", GPU)])
    assert claimed(one) == {("main", GPU)}
    assert vector(one) == {GPU: 3}
    assert vector(one, ()) == {GPU: 5}
    assert requests(one)[GPU] == Quantity.of(3)


def test_an_invalid_amount_is_named() -> None:
    with pytest.raises(InvalidInput, match="memory: quantities must match"):
        vector(pod(container(memory="much")))
    with pytest.raises(InvalidInput, match="cpu: "):
        whole({"cpu": "1x"})


def test_amounts_can_be_added_compared_and_taken_away_again() -> None:
    one, other = amounts({"cpu": "1", GPU: "1"}), amounts({"cpu": "500m", "memory": "1"})
    assert less(added(one, other), other) == one
    assert larger(one, other) == amounts({"cpu": "1", "memory": "1", GPU: "1"})


texts = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS), max_size=3)
containers = st.lists(st.tuples(texts, st.booleans()), max_size=4)


def at_moments(init: list[tuple[Document, bool]], main: list[Document]) -> list[list[Document]]:
    """What runs together: with each init container those sidecars that came before, and at the end all that stay."""
    sidecars = [[each for each, stays in init[:i] if stays] for i in range(len(init) + 1)]
    return [*([*sidecars[i], each] for i, (each, _) in enumerate(init)), [*sidecars[-1], *main]]


@given(containers, st.lists(texts, min_size=1, max_size=3), texts)
def test_a_pod_asks_for_the_most_that_it_needs_at_one_moment(
    init: list[tuple[Document, bool]], main: list[Document], overhead: Document
) -> None:
    def nano(name: str, running: list[Document]) -> int:
        return sum(Quantity.parse(each[name]).nano for each in running if name in each)

    named = [
        {"name": f"i{i}", "resources": {"requests": each}} | ({"restartPolicy": "Always"} if stays else {})
        for i, (each, stays) in enumerate(init)
    ]
    lasting = [{"name": f"c{i}", "resources": {"requests": each}} for i, each in enumerate(main)]
    one = pod(*lasting, init=named, overhead=overhead)
    expected = {
        name: Quantity(max(nano(name, running) for running in at_moments(init, main)) + nano(name, [overhead]))
        for name in NAMES
    }
    found = requests(one)
    assert {name: found.get(ResourceName(name), Quantity(0)) for name in NAMES} == expected
    in_units = {name: each.as_milli() if name == "cpu" else each.as_int() for name, each in expected.items()}
    assert vector(one) == {name: number for name, number in in_units.items() if number}
