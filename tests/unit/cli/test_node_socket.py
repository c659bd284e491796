import errno
import socket
from pathlib import Path

import pytest

from devlet.cli.node_socket import NodeSocket
from devlet.cli.session import Session
from devlet.errors import Unavailable


def failure(root: Path) -> str:
    with pytest.raises(Unavailable) as raised:
        Session(NodeSocket(root, f"devlet up --root {root}"), warn=print).get("/api")
    return str(raised.value)


def test_where_nothing_runs_the_next_step_is_said(root: Path) -> None:
    assert failure(root) == f"no devlet runs on {root}: start one with `devlet up --root {root}`"
    assert failure(root / "missing").startswith("no devlet runs on")


def test_a_leftover_socket_is_not_a_driver(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(root / "devlet.sock"))
    assert failure(root).startswith("no devlet runs on")


def test_a_path_that_no_socket_can_have_is_said(root: Path) -> None:
    assert "longer than 107 bytes" in failure(root / ("x" * 120))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "only the user who runs the devlet may connect"),
        (TimeoutError(), "the devlet does not answer: look at its log"),
        (ConnectionError("this is not HTTP"), "this is not HTTP"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
    ],
)
def test_other_trouble_names_the_socket(error: OSError, text: str) -> None:
    found = NodeSocket(Path("/r")).trouble(error)
    assert found.startswith("/r/devlet.sock: ")
    assert text in found
