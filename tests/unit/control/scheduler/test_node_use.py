from hypothesis import given
from hypothesis import strategies as st

from devlet.control.scheduler.node_use import NodeUse, presumed
from devlet.objects.identifiers import PodUID, ResourceName
from devlet.objects.pods.host_ports import Port

GPU = ResourceName("vendor.com/gpu")
NAMES = [ResourceName("cpu"), ResourceName("memory"), GPU]
PORTS = [Port("0.0.0.0", "TCP", 80), Port("10.0.0.1", "TCP", 80)]

Taken = tuple[dict[ResourceName, int], frozenset[Port]]

takings = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 5)), st.frozensets(st.sampled_from(PORTS), max_size=2)
)
steps = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | takings), max_size=30)


def state(use: NodeUse) -> tuple[object, ...]:
    return use.used, use.ports, use.cpu, use.memory, use.count


@given(steps)
def test_the_use_of_a_node_is_the_sum_of_its_pods(steps: list[tuple[str, Taken | None]]) -> None:
    use, there = NodeUse(), dict[str, Taken]()
    for pod, taken in steps:
        if taken is None:
            use.remove(PodUID(pod))
            there.pop(pod, None)
        else:
            use.add(PodUID(pod), *taken)
            there[pod] = taken
    afresh = NodeUse()
    for pod, taken in there.items():
        afresh.add(PodUID(pod), *taken)
    assert state(use) == state(afresh)
    assert all(use.has(PodUID(pod)) == (pod in there) for pod in "abcd")


def test_an_empty_node_has_no_use() -> None:
    use = NodeUse()
    use.add(PodUID("a"), {GPU: 1}, frozenset(PORTS))
    use.remove(PodUID("a"))
    assert state(use) == ({}, {}, 0, 0, 0)


def test_a_port_is_used_until_its_last_pod_is_removed() -> None:
    use = NodeUse()
    use.add(PodUID("a"), {}, frozenset(PORTS[:1]))
    use.add(PodUID("b"), {}, frozenset(PORTS[:1]))
    use.remove(PodUID("a"))
    assert list(use.ports) == PORTS[:1]


def test_a_pod_without_requests_counts_with_default_values() -> None:
    assert presumed({}) == (100, 200 * 1024 * 1024)
    assert presumed({ResourceName("cpu"): 7, ResourceName("memory"): 8}) == (7, 8)
