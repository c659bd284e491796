import os
import stat
from pathlib import Path

import pytest

from devlet.daemon.root import default_root, lay_out, longest_socket_path, prepare
from devlet.errors import InvalidInput


def test_the_default_is_the_system_directory_for_root() -> None:
    assert default_root({"XDG_STATE_HOME": "/s"}, uid=0) == Path("/var/lib/devlet")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/home/somebody/state", "HOME": "/h"}, "/home/somebody/state/devlet"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/devlet"),
        ({"HOME": "/h"}, "/h/.local/state/devlet"),
        ({"HOME": "/home/anna"}, "/home/anna/.devlet"),
    ],
)
def test_the_default_for_others_is_their_state_directory(environ: dict[str, str], expected: str) -> None:
    assert default_root(environ, uid=1000) == Path(expected)


def test_a_new_root_is_ours_alone(root: Path) -> None:
    before = os.umask(0)
    try:
        prepare(root / "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o700


def test_a_root_that_others_can_read_is_accepted(root: Path) -> None:
    root.chmod(0o755)
    prepare(root)
    assert stat.S_IMODE(root.stat().st_mode) == 0o755


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_root_that_others_can_write_is_refused(root: Path, mode: int) -> None:
    root.chmod(mode)
    with pytest.raises(InvalidInput, match=f"mode {mode:04o}"):
        prepare(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_root_of_another_user_is_refused(root: Path) -> None:
    os.chown(root, 65534, -1)
    with pytest.raises(InvalidInput, match="belongs to user 65534, not to user 0"):
        prepare(root)


def test_a_directory_with_other_content_is_not_a_root(root: Path) -> None:
    (root / "passwd").touch()
    with pytest.raises(
        InvalidInput, match=r"is not empty and was not created by devlet or a kubelet \(it contains 'passwd'\)"
    ):
        prepare(root)
    assert os.listdir(root) == ["passwd"]


@pytest.mark.parametrize("sign", ["devlet.lock", "cluster.db", "device-plugins", "plugins_registry", "pod-resources"])
def test_the_root_of_a_devlet_or_a_kubelet_is_accepted(root: Path, sign: str) -> None:
    (root / sign).mkdir()
    (root / "pods").mkdir()
    prepare(root)


def test_a_configuration_a_log_and_cdi_specs_may_be_in_a_new_root(root: Path) -> None:
    (root / "cdi").mkdir()
    (root / "devlet.yaml").touch()
    (root / "up.log").touch()
    prepare(root)


def test_a_file_is_not_a_root(root: Path) -> None:
    (root / "f").touch()
    with pytest.raises(InvalidInput, match="is not a directory"):
        prepare(root / "f")


def test_a_root_below_a_file_is_refused(root: Path) -> None:
    (root / "f").touch()
    with pytest.raises(InvalidInput, match="cannot be used: Not a directory"):
        prepare(root / "f" / "r")


def test_the_longest_root_leaves_room_for_a_64_byte_socket_name() -> None:
    longest = Path("/" + "x" * 24)
    assert longest_socket_path(longest) == len(f"{longest}/plugins_registry/" + "s" * 64) == 107


def test_a_root_that_is_too_long_is_refused_with_the_length(root: Path) -> None:
    too_long = root / ("x" * (25 - len(str(root))))
    assert len(str(too_long)) == 26
    with pytest.raises(InvalidInput, match=r"up to 108 bytes and 107 are possible; .* at most 25 bytes"):
        prepare(too_long)
    assert not too_long.exists()


def test_all_directories_that_drivers_need_are_laid_out_and_may_be_there_already(root: Path) -> None:
    lay_out(root)
    lay_out(root)
    assert {path.name for path in root.iterdir()} == {
        "device-plugins",
        "plugins_registry",
        "plugins",
        "pod-resources",
        "cdi",
    }


def test_a_file_in_the_place_of_a_directory_is_named(root: Path) -> None:
    (root / "plugins_registry").touch()
    with pytest.raises(InvalidInput, match="plugins_registry cannot be created: File exists; move the file there away"):
        lay_out(root)
