import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.kit.dir_watch import Change, Found, Gone, Rescanned
from devlet.plugins.socket_dir import SocketDir, Sockets
from devlet.testing.waiting import deadline

A, B = Path("/r/a.sock"), Path("/r/d/b.sock")
SOCKET, FILE = 0o140600, 0o100600


def found(path: Path, inode: int = 1, *, ctime: int = 1, mode: int = SOCKET) -> Found:
    status = os.stat_result((mode, inode, 0, 1, 0, 0, 0, 0, 0, ctime), {"st_ctime_ns": ctime})
    return Found(path, status)


def after(*batches: list[Change]) -> list[dict[Path, int]]:
    sockets = Sockets()
    states = []
    for batch in batches:
        sockets.apply(batch)
        states.append(sockets.generations)
    return states


@pytest.mark.spec("DP-9.25")
def test_a_socket_that_is_reported_twice_keeps_its_generation() -> None:
    assert after([Rescanned(), found(A)], [found(A)], [found(A, ctime=2)]) == [{A: 1}] * 3


def test_a_socket_with_another_inode_has_another_generation() -> None:
    assert after([found(A, 1)], [found(A, 2)]) == [{A: 1}, {A: 2}]


@pytest.mark.spec("DP-8.56")
def test_a_socket_that_was_removed_in_between_has_another_generation_even_with_the_same_inode() -> None:
    assert after([found(A)], [Gone(A), found(A)]) == [{A: 1}, {A: 2}]


def test_a_new_scan_keeps_existing_sockets_and_drops_missing_ones() -> None:
    assert after([found(A, 1), found(B, 2)], [Rescanned(), found(B, 2, ctime=5)]) == [{A: 1, B: 2}, {B: 2}]


@pytest.mark.spec("DP-9.25")
def test_after_lost_events_a_touched_socket_counts_as_created_again() -> None:
    assert after([found(A), found(B, 2)], [Rescanned(lost=True), found(A, ctime=2), found(B, 2)]) == [
        {A: 1, B: 2},
        {A: 3, B: 2},
    ]


def test_a_socket_that_is_removed_after_a_new_scan_gets_a_new_generation() -> None:
    assert after([found(A)], [Rescanned(), Gone(A), found(A)]) == [{A: 1}, {A: 2}]


def test_a_removed_directory_removes_its_sockets() -> None:
    assert after([found(A), found(B)], [Gone(Path("/r/d"), directory=True)]) == [{A: 1, B: 2}, {A: 1}]


def test_other_files_are_ignored_even_if_they_replace_a_socket() -> None:
    assert after([found(A), found(B, mode=FILE)], [found(A, 2, mode=FILE)]) == [{A: 1}, {}]


def test_sockets_beyond_the_limit_are_ignored() -> None:
    sockets = Sockets(limit=2)
    sockets.apply([found(Path(f"/r/{number}")) for number in range(5)])
    assert sockets.generations == {Path("/r/0"): 1, Path("/r/1"): 2}
    sockets.apply([Gone(Path("/r/0")), found(Path("/r/9"))])
    assert Path("/r/9") in sockets.generations


changes = st.lists(
    st.one_of(
        st.builds(found, st.sampled_from([A, B]), st.integers(1, 3)),
        st.sampled_from([Gone(A), Gone(B), Gone(B.parent, directory=True), Rescanned(), Rescanned(lost=True)]),
    ),
    max_size=8,
)


@given(st.lists(changes, max_size=8))
def test_generations_are_never_reused(batches: list[list[Change]]) -> None:
    owners: dict[int, Path] = {}
    ended: set[int] = set()
    before: set[int] = set()
    for state in after(*batches):
        now = set(state.values())
        assert not now & ended
        assert all(owners.setdefault(generation, path) == path for path, generation in state.items())
        ended |= before - now
        before = now


@pytest.fixture
def sockets(root: Path) -> Iterator[SocketDir]:
    with SocketDir(root) as made:
        yield made


def bind(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


async def changed(sockets: SocketDir) -> dict[Path, int]:
    with deadline():
        return await sockets.changed()


@pytest.mark.anyio
@pytest.mark.spec("DP-8.57")
async def test_sockets_that_exist_before_the_start_are_found(root: Path, sockets: SocketDir) -> None:
    paths = {bind(root / "a.sock"), bind(root / "d" / "b.sock"), bind(root / "d" / "e" / "c.sock")}
    assert (await changed(sockets)).keys() == paths


@pytest.mark.anyio
async def test_the_first_answer_comes_at_once(sockets: SocketDir) -> None:
    assert await changed(sockets) == {}


@pytest.mark.anyio
@pytest.mark.spec("DP-8.54")
async def test_ten_sockets_are_created_and_removed_one_after_the_other(root: Path, sockets: SocketDir) -> None:
    assert await changed(sockets) == {}
    expected: set[Path] = set()
    for number in range(10):
        expected.add(bind(root / f"{number}.sock"))
        assert (await changed(sockets)).keys() == expected
    for path in sorted(expected):
        path.unlink()
        expected.remove(path)
        assert (await changed(sockets)).keys() == expected


@pytest.mark.anyio
@pytest.mark.spec("DP-8.56")
async def test_a_socket_that_is_created_ten_times_is_one_entry_with_ten_generations(
    root: Path, sockets: SocketDir
) -> None:
    path = bind(root / "a.sock")
    generations = [(await changed(sockets))[path]]
    for _ in range(10):
        path.unlink()
        bind(path)
        seen = await changed(sockets)
        while not seen:  # whether the moment without socket is seen is chance
            seen = await changed(sockets)
        assert seen.keys() == {path}
        generations.append(seen[path])
    assert generations == sorted(set(generations))


@pytest.mark.anyio
@pytest.mark.spec("DP-9.25")
async def test_a_socket_that_is_renamed_away_is_removed(root: Path, sockets: SocketDir) -> None:
    path = bind(root / "a.sock")
    await changed(sockets)
    path.rename(root / ".a.sock")
    assert await changed(sockets) == {}


@pytest.mark.anyio
async def test_a_socket_that_is_renamed_over_another_takes_its_place(root: Path, sockets: SocketDir) -> None:
    path = bind(root / "a.sock")
    before = await changed(sockets)
    bind(root / ".a.sock.new").rename(path)
    after = await changed(sockets)
    assert after.keys() == {path}
    assert after != before


@pytest.mark.anyio
@pytest.mark.spec("DP-9.25")
async def test_a_new_mode_or_owner_changes_nothing_and_neither_do_other_files(root: Path, sockets: SocketDir) -> None:
    path = bind(root / "a.sock")
    before = await changed(sockets)
    path.chmod(0o600)
    (root / "file").touch()
    last = bind(root / "last.sock")
    after = await changed(sockets)
    assert after == {**before, last: after[last]}


@pytest.mark.anyio
@pytest.mark.spec("DP-9.25")
@pytest.mark.parametrize("early", [True, False])
async def test_dot_names_are_ignored_for_files_and_directories_early_or_late(
    root: Path, sockets: SocketDir, early: bool
) -> None:
    if not early:
        await changed(sockets)
    bind(root / ".a.sock")
    bind(root / ".d" / "b.sock")
    bind(root / "d" / ".c" / "c.sock")
    last = bind(root / "last.sock")
    assert (await changed(sockets)).keys() == {last}


@pytest.mark.anyio
async def test_a_link_to_a_socket_is_a_socket(root: Path, sockets: SocketDir) -> None:
    bind(root / ".real.sock")
    (root / "link.sock").symlink_to(root / ".real.sock")
    assert (await changed(sockets)).keys() == {root / "link.sock"}


@pytest.mark.anyio
async def test_a_registry_that_is_removed_and_created_again_is_followed(root: Path) -> None:
    registry = root / "registry"
    path = bind(registry / "a.sock")
    with SocketDir(registry) as sockets:
        before = await changed(sockets)
        shutil.rmtree(registry)
        assert await changed(sockets) == {}
        bind(path)
        after = await changed(sockets)
        assert after.keys() == {path}
        assert after != before


def test_ignored_sockets_are_added_when_others_are_removed() -> None:
    sockets = Sockets(limit=2)
    sockets.apply([found(Path(f"/r/{number}")) for number in range(4)])
    sockets.apply([Gone(Path("/r/3")), Gone(Path("/r/0"))])
    assert set(sockets.generations) == {Path("/r/1"), Path("/r/2")}
