"""Loopback ports that a program started next can listen on.

A port that is merely free now may be handed to somebody else before the program binds it. So each port is left
in TIME_WAIT: for a minute the kernel gives it to nobody who asks for any port, while a server that names it and
sets SO_REUSEADDR, as Go, Python's servers and most others do, gets it.
"""

import socket

__all__ = ["free_ports"]

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Different ports on 127.0.0.1, each kept from others for about a minute."""
    servers = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]  # all at once, so that they differ
    return [_reserve(server) for server in servers]


def _reserve(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    with server, socket.create_connection((LOOPBACK, port)) as client:
        accepted, _ = server.accept()
        accepted.close()  # whoever closes first, here the port's own end, keeps TIME_WAIT
        client.recv(1)
    return port
