import os
import stat
from pathlib import Path

import pytest

from devlet.errors import NotFound
from devlet.runtime.cdi.host_nodes import HostNode, find, look


def test_a_character_device_has_type_and_numbers() -> None:
    node = look("/dev/null")
    assert (node.type, node.major, node.minor) == ("c", 1, 3)


def test_a_pipe_has_a_mode(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.chmod(tmp_path / "pipe", 0o640)
    assert look(str(tmp_path / "pipe")) == HostNode("p", 0, 0, 0o640, os.getuid(), (tmp_path / "pipe").stat().st_gid)


@pytest.mark.parametrize(
    ("path", "text"),
    [("/dev", "not a device node"), ("/dev/gone", "No such file"), ("/dev/nu\0ll", "embedded null"), ("", "No such")],
)
def test_something_that_is_not_a_device_node_is_not_found(path: str, text: str) -> None:
    with pytest.raises(NotFound, match=text):
        look(path)


def test_a_link_is_not_a_device_node_but_is_followed_by_find(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    (tmp_path / "dead").symlink_to("gone")
    with pytest.raises(NotFound, match="not a device node"):
        look(str(tmp_path / "link"))
    assert find(str(tmp_path / "link")) == [("", "/dev/null")]
    for path in (str(tmp_path / "dead"), "a\0b"):
        with pytest.raises(NotFound):
            find(path)


def test_a_directory_without_device_nodes_has_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    assert find(str(tmp_path)) == []


def test_a_directory_stands_for_the_device_nodes_below_it() -> None:
    found = dict(find("/dev"))
    assert found["null"] == "/dev/null"
    assert not any(name.split("/")[0] in ("pts", "shm", "fd", "mqueue", "console") for name in found)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_device_nodes_are_found_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "b" / "pts").mkdir(parents=True)
    try:
        for name in ("a", "b/c", "b/console", "b/pts/0"):
            os.mknod(tmp_path / name, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no device nodes can be made here")
    assert find(str(tmp_path)) == [("a", str(tmp_path / "a")), ("b/c", str(tmp_path / "b" / "c"))]
