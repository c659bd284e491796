import socket

from tests.support.free_ports import free_ports


def test_the_ports_differ() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(1024 <= port < 65536 for port in ports)


def test_a_server_that_names_the_port_gets_it() -> None:
    [port] = free_ports(1)
    with socket.create_server(("127.0.0.1", port)) as server:
        assert server.getsockname()[1] == port


def test_a_reserved_port_is_never_assigned_to_others() -> None:
    reserved = set(free_ports(50))
    others = [socket.create_server(("127.0.0.1", 0)) for _ in range(200)]
    taken = {server.getsockname()[1] for server in others}
    for server in others:
        server.close()
    assert not reserved & taken


def test_no_port_is_no_list() -> None:
    assert free_ports(0) == []
