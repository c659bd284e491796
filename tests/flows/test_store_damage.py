"""A bit flips in the files of an embedded cluster that was killed: nothing acknowledged is lost without a word."""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from devlet.cli.main import run
from devlet.cluster.store import database_files, high_water_mark
from devlet.cluster.store.ledger import open_file
from devlet.cluster.store.log_file import Row
from devlet.cluster.store.store import open_store
from devlet.errors import StateCorrupt
from devlet.kit.clock import SystemClock
from devlet.objects.kinds import CONFIG_MAPS

ROUNDS = int(os.environ.get("DEVLET_CRASH_ROUNDS", "3"))
FLIPS = 20 * ROUNDS
FILES = ("cluster.db", "cluster.db-wal", "cluster.db-mark")
Objects = dict[tuple[str, str], Row]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root whose writer was killed with an open write-ahead log."""
    root = tmp_path_factory.mktemp("killed")
    script = Path(__file__).with_name("crash_writer.py")
    argv = [sys.executable, str(script), str(root / "cluster.db"), "0", "7", "4", ""]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(400):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (root / "cluster.db-wal").stat().st_size > 100_000
    return root


def copied(killed: Path, root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(mode=0o700)
    for name in FILES:
        shutil.copy(killed / name, root / name)
    return root / "cluster.db"


def flip(path: Path, chance: random.Random) -> int:
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    data[at] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    return at


def read(path: Path) -> tuple[int, Objects]:
    """The version and the objects, as a start finds them."""
    with closing(open_file(path, SystemClock())) as file:
        contents = file.contents()
        objects = {(row.kind, f"{row.namespace}/{row.name}"): row for row in file.rows()}
        return contents.last, {key: row for key, row in objects.items() if not row.deleted}


def write_once(path: Path) -> int:
    """Start the cluster, write, stop it: the version of what was written."""

    async def main() -> int:
        async with open_store(path) as store:
            made = await store.create(CONFIG_MAPS, {"metadata": {"generateName": "after-"}}, "default")
            return int(made["metadata"]["resourceVersion"])

    return anyio.run(main)


def follow_advice(refused: StateCorrupt) -> None:
    """Run the command in the message, as it is written there."""
    (advice,) = re.findall(r"`devlet (store repair .*?)`", str(refused))
    assert run(shlex.split(advice)) == 0


@pytest.mark.crash
@pytest.mark.timeout(120 + FLIPS)
def test_a_flipped_bit_loses_nothing_or_the_start_is_refused_with_what_was_lost(
    killed: Path, root: Path, crash_seed: int
) -> None:
    chance = random.Random(crash_seed)
    version, objects = read(copied(killed, root / "whole"))
    mark = high_water_mark.read(database_files.mark(killed / "cluster.db"))
    acknowledged = mark.version if mark else version
    refusals = 0
    for _ in range(FLIPS):
        path = copied(killed, root / "trial")
        at = flip(path.with_name("cluster.db-wal"), chance)
        before = {file: (path.parent / file).read_bytes() for file in FILES}
        try:
            found = read(path)
            # Writes after the mark were not acknowledged when the writer was killed, and may be lost.
            assert found == (version, objects) or acknowledged <= found[0] < version, f"byte {at}"
        except StateCorrupt as refused:
            refusals += 1
            assert {file: (path.parent / file).read_bytes() for file in FILES} == before, (
                "a refused start changed files"
            )
            if refusals % 8 == 1:
                follow_advice(refused)
                assert write_once(path) > version, f"byte {at}"
    assert refusals > FLIPS // 2


@pytest.mark.crash
def test_the_database_can_be_moved_away_while_its_log_stays(killed: Path, root: Path) -> None:
    version, _ = read(copied(killed, root / "whole"))
    path = copied(killed, root / "trial")
    wal = path.with_name("cluster.db-wal").read_bytes()
    path.rename(root / "elsewhere")
    assert write_once(path) > version
    (kept,) = path.parent.glob("*.damaged-*-wal")
    assert kept.read_bytes() == wal
