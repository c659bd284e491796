"""Each driver has a root of its own."""

import socket
import tempfile
from pathlib import Path

import pytest

from devlet.errors import InvalidInput, PluginUnavailable
from devlet.sanity.stand import BaseStand, called, check_directory


def test_a_root_goes_unless_it_is_kept(root: Path) -> None:
    with BaseStand()._root() as made:
        assert made.is_dir()
    assert not made.exists()
    stand = BaseStand(keep=root)
    for number in ("001", "002"):
        with stand._root() as made:
            assert made == root / number
        assert made.is_dir()


def test_one_that_is_too_long_for_sockets_is_an_error_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 60)
    with pytest.raises(InvalidInput, match="too long for sockets"), BaseStand(keep=long)._root():
        pass
    assert not long.exists()
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with pytest.raises(InvalidInput, match="too long for sockets"), BaseStand()._root():
        pass
    assert not list(long.iterdir())


def test_what_an_earlier_run_kept_is_not_mixed_with_what_is_new(root: Path) -> None:
    with BaseStand(keep=root)._root():
        pass
    with pytest.raises(InvalidInput, match="files of an earlier run"), BaseStand(keep=root)._root():
        pass


def test_where_nothing_can_be_kept_is_said() -> None:
    with (
        pytest.raises(InvalidInput, match="/proc/x: No such file or directory"),
        BaseStand(keep=Path("/proc/x"))._root(),
    ):
        pass


def test_a_driver_is_not_attached_to_in_a_directory_that_is_not_there(root: Path) -> None:
    check_directory(root)
    with pytest.raises(InvalidInput, match="does not exist: expected the directory"):
        check_directory(root / "nowhere")


@pytest.mark.anyio
async def test_a_listener_that_cannot_be_called_is_reported(root: Path) -> None:
    async def call(path: Path) -> None:
        raise PluginUnavailable("x", "it speaks something else")

    (root / "file").touch()
    paths = [root / "file", root / "x.sock"]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(paths[1]))
        listener.listen()
        said = await called(paths, call)
    assert said == "\na process listens on x.sock, but calling it failed: it speaks something else"
    assert await called(paths, call) == ""
