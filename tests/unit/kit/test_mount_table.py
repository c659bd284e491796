import os
import subprocess
import sys
from pathlib import Path

import pytest

from devlet.kit import mount_table
from devlet.kit.mount_table import MountTable, Place, resolved

HOST = """\
20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
21 20 0:30 / /run rw - tmpfs tmpfs rw
22 20 8:2 /@data /srv/my\\040data rw - btrfs /dev/sdb rw
23 22 0:31 / /srv/my\\040data/hidden rw - tmpfs tmpfs rw
24 22 0:32 / /srv/my\\040data/hidden rw - tmpfs tmpfs rw
nonsense
"""
# As `devlet exec --root /run/n1` leaves it on a host whose kubelet has a mount of its own below its directory.
PRIVATE = """\
40 1 8:1 / / rw - ext4 /dev/sda1 rw
41 40 0:30 / /run rw - tmpfs tmpfs rw
42 40 8:1 /elsewhere /var/lib/kubelet/plugins rw - ext4 /dev/sda1 rw
43 40 0:30 /n1 /var/lib/kubelet rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/etc/passwd", Place("8:1", Path("/etc/passwd"))),
        ("/", Place("8:1", Path("/"))),
        ("/run/n1/s.sock", Place("0:30", Path("/n1/s.sock"))),
        ("/running", Place("8:1", Path("/running"))),
        ("/srv/my data/x", Place("8:2", Path("/@data/x"))),
    ],
)
def test_a_path_is_a_place_in_the_file_system_that_is_mounted_there(path: str, place: Place) -> None:
    table = MountTable.parse(HOST)
    assert table.place(Path(path)) == place
    assert list(table.paths(place)) == [Path(path)]


def test_a_mount_that_another_one_covers_is_not_entered() -> None:
    found = MountTable.parse(PRIVATE).place(Path("/var/lib/kubelet/plugins/gpu/dra.sock"))
    assert found == Place("0:30", Path("/n1/plugins/gpu/dra.sock"))
    assert list(MountTable.parse(HOST).paths(found)) == [Path("/run/n1/plugins/gpu/dra.sock")]


def test_one_place_may_have_several_paths() -> None:
    place = Place("0:30", Path("/n1/s.sock"))
    assert list(MountTable.parse(PRIVATE).paths(place)) == [Path("/run/n1/s.sock"), Path("/var/lib/kubelet/s.sock")]


def test_what_is_covered_has_no_path() -> None:
    assert list(MountTable.parse(PRIVATE).paths(Place("8:1", Path("/elsewhere/gpu")))) == [Path("/elsewhere/gpu")]


@pytest.mark.parametrize("text", ["", "nonsense", "20 1 8:1 / /run rw - ext4 /dev/sda1 rw"])
def test_without_a_root_directory_nothing_is_known(text: str) -> None:
    assert MountTable.parse(text).place(Path("/run/x")) is None


def test_a_root_directory_that_is_its_own_parent_is_one() -> None:
    assert MountTable.parse("1 1 0:2 / / rw - rootfs x x").place(Path("/x")) == Place("0:2", Path("/x"))


def test_the_mounts_of_a_process_are_read() -> None:
    table = mount_table.read(os.getpid())
    assert table is not None
    place = table.place(Path(__file__))
    assert place is not None
    assert Path(__file__) in list(table.paths(place))


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert mount_table.read(gone.pid) is None


def test_links_are_followed_as_far_as_there_is_something(tmp_path: Path) -> None:
    tmp_path = tmp_path.resolve()
    (tmp_path / "real").mkdir()
    (tmp_path / "absolute").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "relative").symlink_to("../absolute/./missing")
    (tmp_path / "circle").symlink_to("circle")
    for path in ("absolute/x", "absolute/relative/y", "real/../absolute/relative", "missing/x", "real"):
        assert resolved(tmp_path / path) == Path(os.path.realpath(tmp_path / path))
        assert resolved(tmp_path / path, os.getpid()) == Path(os.path.realpath(tmp_path / path))
    assert resolved(tmp_path / "circle") == tmp_path / "circle"
