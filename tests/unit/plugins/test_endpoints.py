"""The endpoint of a plugin is below the root, whatever it announces and wherever it runs."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.kit.kept_files import kind
from devlet.kit.mount_table import MountTable
from devlet.plugins.endpoints import locate, mapped, outside, refusal

HOST = MountTable.parse("20 1 8:1 / / rw - ext4 x rw\n21 20 0:30 / /run rw - tmpfs x rw")
PRIVATE = MountTable.parse(
    "40 1 8:1 / / rw - ext4 x rw\n41 40 0:30 / /run rw - tmpfs x rw\n42 40 0:30 /n1 /var/lib/kubelet rw - tmpfs x rw"
)
CONTAINER = MountTable.parse("60 1 0:99 / / rw - overlay x rw\n61 60 0:30 /n1/plugins/gpu /csi rw - tmpfs x rw")
SOCKET = Path("/var/lib/kubelet/plugins/gpu/dra.sock")


@pytest.mark.parametrize(
    ("theirs", "path", "ours"),
    [
        (PRIVATE, "/var/lib/kubelet/plugins/gpu/dra.sock", "/run/n1/plugins/gpu/dra.sock"),
        (PRIVATE, "/run/n1/plugins/gpu/dra.sock", "/run/n1/plugins/gpu/dra.sock"),
        (CONTAINER, "/csi/dra.sock", "/run/n1/plugins/gpu/dra.sock"),
        (HOST, "/var/lib/kubelet/plugins/gpu/dra.sock", None),
        (PRIVATE, "/run/n2/plugins/gpu/dra.sock", None),
        (CONTAINER, "/run/n1/plugins/gpu/dra.sock", None),
        (MountTable(()), "/var/lib/kubelet/plugins/gpu/dra.sock", None),
    ],
)
def test_a_path_of_the_plugin_is_mapped_below_the_root_or_not_at_all(
    theirs: MountTable, path: str, ours: str | None
) -> None:
    assert mapped(Path(path), theirs, Path("/run/n1"), HOST) == (Path(ours) if ours else None)


def test_a_path_below_the_root_is_used_unchanged(root: Path) -> None:
    for pid in (None, os.getpid()):
        assert locate(root / "plugins" / "gpu.sock", root, pid) == root / "plugins" / "gpu.sock"


def test_the_root_may_be_reached_through_a_link(root: Path) -> None:
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    for given, announced in (("link", "real"), ("real", "link"), ("link", "link")):
        path = root / announced / "gpu.sock"
        assert locate(path, root / given, os.getpid()) == path


@pytest.mark.parametrize("known", [True, False])
def test_a_path_elsewhere_is_refused_with_what_to_do(root: Path, known: bool) -> None:
    (root / "r").mkdir()
    for announced in (Path("/run/gpu.sock"), root / "r" / ".." / "gpu.sock", root / "rest.sock"):
        with pytest.raises(InvalidInput, match=f"{announced} is not below devlet's root {root}/r.*devlet exec --root"):
            locate(announced, root / "r", os.getpid() if known else None)


def test_the_kubelets_directory_of_this_host_is_elsewhere(root: Path) -> None:
    with pytest.raises(InvalidInput):
        locate(SOCKET, root, os.getpid())


def test_for_an_unknown_process_the_kubelets_directory_is_the_root(root: Path) -> None:
    assert locate(SOCKET, root, None) == root / "plugins" / "gpu" / "dra.sock"


def test_a_link_that_leads_out_of_the_root_is_refused(root: Path) -> None:
    (root / "r").mkdir()
    (root / "r" / "gpu.sock").symlink_to("../host.sock")
    assert outside(root / "r" / "gpu.sock", root / "r").startswith(f"leads to {root}/host.sock, which is outside of")
    with pytest.raises(InvalidInput):
        locate(root / "r" / "gpu.sock", root / "r", os.getpid())
    (root / "r" / "plugins").symlink_to("/var/lib/kubelet/plugins")
    with pytest.raises(InvalidInput):
        locate(SOCKET, root / "r", None)


@pytest.fixture
def private(root: Path) -> Iterator[int]:
    """A process for which /var/lib/kubelet is the root."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    argv = [sys.executable, "-m", "devlet.runtime.kubelet_paths", str(root), "sh", "-c", "echo ready; exec sleep 600"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process.pid
        finally:
            process.kill()


def test_for_a_process_under_devlet_exec_the_kubelets_directory_is_the_root(root: Path, private: int) -> None:
    assert locate(SOCKET, root, private) == root / "plugins" / "gpu" / "dra.sock"
    with pytest.raises(InvalidInput):
        locate(Path("/run/gpu.sock"), root, private)


def test_a_root_behind_a_link_keeps_its_given_path(root: Path, private: int) -> None:
    link = root / "link"
    link.symlink_to(root)
    assert locate(SOCKET, link, private) == link / "plugins" / "gpu" / "dra.sock"


def test_our_own_socket_and_a_missing_one_are_accepted(root: Path) -> None:
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


def test_a_path_out_of_the_directory_is_refused_whether_it_exists_or_not(root: Path) -> None:
    (root / "in").mkdir()
    (root / "in" / "link").symlink_to("../later.sock")
    assert refusal(root / "in" / "later.sock", root / "in") == ""
    assert refusal(root / "in" / "link", root) == ""
    assert refusal(root / "in" / "link", root / "in").startswith(f"leads to {root}/later.sock, which is outside of")
    assert refusal(root / "later.sock", root / "in").startswith("is outside of devlet's root")


def test_the_error_says_what_is_at_the_path_instead_of_a_socket(root: Path) -> None:
    (root / "file").touch()
    os.mkfifo(root / "pipe")
    assert refusal(root / "file") == "is a file, not a socket"
    assert refusal(root / "pipe") == "is a pipe, not a socket"
    assert refusal(root) == "is a directory, not a socket"
    assert refusal(Path("/dev/null")) == "is a device, not a socket"
    assert kind(os.stat("/dev/null").st_mode) == "a device"


def test_a_path_that_no_socket_can_have_is_refused(root: Path) -> None:
    assert refusal(Path("dra.sock")) == "is not an absolute path"
    assert refusal(Path("/a\0b")) == "contains a zero byte"
    assert refusal(Path("/" + 107 * "x")) == "has 108 bytes, a socket path has at most 107"
    (root / "loop").symlink_to("loop")
    assert refusal(root / "loop") == "cannot be accessed: Too many levels of symbolic links"


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
