import pytest

from devlet.objects.documents import view
from devlet.objects.pods.host_ports import Port, conflict, of_pod
from devlet.objects.types.pod import Pod

HTTP = Port("0.0.0.0", "TCP", 80)


def test_ports_of_the_containers_that_stay_count() -> None:
    def container(name: str, port: int, **more: str) -> dict[str, object]:
        ports = [{"containerPort": 1, "hostPort": port, "protocol": "UDP", "hostIP": "10.0.0.1"}, {"containerPort": 2}]
        return {"name": name, "ports": ports, **more}

    inits = [container("once", 1), container("sidecar", 2, restartPolicy="Always")]
    pod = view(Pod, {"spec": {"containers": [container("main", 3)], "initContainers": inits}})
    assert of_pod(pod) == {Port("10.0.0.1", "UDP", 2), Port("10.0.0.1", "UDP", 3)}


def test_address_and_protocol_have_defaults() -> None:
    pod = view(Pod, {"spec": {"containers": [{"name": "main", "ports": [{"hostPort": 80, "containerPort": 80}]}]}})
    assert of_pod(pod) == {HTTP}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (HTTP, True),
        (Port("10.0.0.1", "TCP", 80), True),
        (Port("10.0.0.1", "UDP", 80), False),
        (Port("0.0.0.0", "TCP", 81), False),
    ],
)
def test_a_port_on_all_addresses_excludes_the_same_port_on_one(other: Port, expected: bool) -> None:
    assert conflict([HTTP], [other]) is conflict([other], [HTTP]) is expected


def test_two_addresses_do_not_exclude_each_other() -> None:
    assert not conflict([Port("10.0.0.1", "TCP", 80)], [Port("10.0.0.2", "TCP", 80)])
    assert not conflict([], [HTTP])


def test_thousands_of_ports_are_compared_in_one_pass() -> None:
    some = [Port("10.0.0.1", "TCP", number) for number in range(30_000)]
    others = [Port("10.0.0.2", "TCP", number) for number in range(30_000)]
    assert not conflict(some, others)
    assert conflict(some, [*others, Port("0.0.0.0", "TCP", 29_999)])
