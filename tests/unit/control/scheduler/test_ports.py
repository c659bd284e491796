import pytest

from devlet.control.scheduler.ports import Port, conflict, of_pod
from devlet.objects.documents import Document, view
from devlet.objects.pod import Pod


def container(*ports: Document, **more: str) -> Document:
    return {"name": "c", "ports": list(ports), **more}


def pod(*containers: Document, init: list[Document] | None = None) -> Pod:
    return view(Pod, {"spec": {"containers": list(containers), "initContainers": init or []}})


def test_ports_of_the_host_count_and_ports_of_containers_do_not() -> None:
    found = of_pod(pod(container({"containerPort": 80}, {"containerPort": 81, "hostPort": 8081})))
    assert found == {Port("0.0.0.0", "TCP", 8081)}


def test_sidecars_keep_their_ports_and_other_init_containers_do_not() -> None:
    port = {"containerPort": 1, "hostPort": 1, "protocol": "UDP", "hostIP": "10.0.0.1"}
    assert of_pod(pod(container(), init=[container(port)])) == frozenset()
    assert of_pod(pod(container(), init=[container(port, restartPolicy="Always")])) == {Port("10.0.0.1", "UDP", 1)}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Port("10.0.0.1", "TCP", 80), Port("10.0.0.1", "TCP", 80), True),
        (Port("10.0.0.1", "TCP", 80), Port("10.0.0.2", "TCP", 80), False),
        (Port("10.0.0.1", "TCP", 80), Port("10.0.0.1", "UDP", 80), False),
        (Port("10.0.0.1", "TCP", 80), Port("10.0.0.1", "TCP", 81), False),
        (Port("0.0.0.0", "TCP", 80), Port("10.0.0.2", "TCP", 80), True),
        (Port("0.0.0.0", "TCP", 80), Port("10.0.0.2", "UDP", 80), False),
    ],
)
def test_a_port_is_taken_at_its_address_and_if_either_wants_all_addresses(
    one: Port, other: Port, expected: bool
) -> None:
    assert conflict([one], [other]) is expected
    assert conflict([other], [one]) is expected
