import os
import socket
from pathlib import Path

import pytest

from devlet.kit.kept_files import kind
from devlet.plugins.socket_files import refusal


def test_a_socket_of_ours_and_nothing_at_all_are_fine(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "dra.sock"))
        assert refusal(root / "dra.sock") == ""
    assert refusal(root / "later.sock") == ""
    assert refusal(root / "later" / "dra.sock") == ""
    (root / "file").touch()
    assert refusal(root / "file" / "dra.sock") == ""


def test_a_link_counts_as_what_it_leads_to(root: Path) -> None:
    (root / "file").touch()
    (root / "link").symlink_to("file")
    (root / "dangling").symlink_to("later.sock")
    assert refusal(root / "link") == "is a file, not a socket"
    assert refusal(root / "dangling") == ""


def test_what_leads_out_of_the_directory_is_refused_whether_it_is_there_or_not(root: Path) -> None:
    (root / "in").mkdir()
    (root / "in" / "link").symlink_to("../later.sock")
    assert refusal(root / "in" / "later.sock", root / "in") == ""
    assert refusal(root / "in" / "link", root) == ""
    assert refusal(root / "in" / "link", root / "in").startswith(f"leads to {root}/later.sock, which is outside of")
    assert refusal(root / "later.sock", root / "in").startswith("is outside of devlet's root")


def test_what_is_no_socket_is_named(root: Path) -> None:
    (root / "file").touch()
    os.mkfifo(root / "pipe")
    assert refusal(root / "file") == "is a file, not a socket"
    assert refusal(root / "pipe") == "is a pipe, not a socket"
    assert refusal(root) == "is a directory, not a socket"
    assert refusal(Path("/dev/null")) == "is a device, not a socket"
    assert kind(os.stat("/dev/null").st_mode) == "a device"


def test_a_path_that_no_socket_can_have_is_refused(root: Path) -> None:
    assert refusal(Path("dra.sock")) == "is not an absolute path"
    assert refusal(Path("/a\0b")) == "has a zero byte"
    assert refusal(Path("/" + 107 * "x")) == "has 108 bytes, a socket path has at most 107"
    (root / "loop").symlink_to("loop")
    assert refusal(root / "loop") == "cannot be looked at: Too many levels of symbolic links"


@pytest.mark.spec("DN-11.21")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_socket_of_another_user_is_refused_unless_that_is_root(root: Path) -> None:
    path = root / "dra.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        os.chown(path, 65534, -1)
        assert refusal(path) == "belongs to uid 65534: a driver's socket must belong to root or to uid 0"
        os.chown(path, 0, -1)
        assert refusal(path) == ""
