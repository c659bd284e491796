import os
import random
import subprocess
import sys
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import StateCorrupt, Unavailable
from devlet.sdk import claim_log
from devlet.sdk.checkpoint import Checkpoint
from devlet.sdk.claim_log import ClaimLog, Entry, Stage
from devlet.sdk.values import ClaimRef

pytestmark = pytest.mark.anyio

DRIVER = Path(__file__).with_name("claim_log_driver.py")
CLAIM = ClaimRef("default", "my-leds", "uid-1")
LEDS = ["red", "green"]


@pytest.fixture
def log(tmp_path: Path) -> "ClaimLog[list[str]]":
    return ClaimLog(tmp_path / "claims.json", list[str])


def on_disk(log: "ClaimLog[list[str]]") -> dict[str, str]:
    """Stages by UID, as somebody else would read them."""
    document = msgspec.json.decode(log._checkpoint.path.read_bytes())
    return {uid: entry["stage"] for uid, entry in document["data"].items()}


async def test_a_claim_is_preparing_before_the_act_and_prepared_after_it(log: "ClaimLog[list[str]]") -> None:
    async with log.preparing(CLAIM, LEDS) as before:
        assert before is None
        assert on_disk(log) == {"uid-1": "preparing"}
    assert on_disk(log) == {"uid-1": "prepared"}
    assert await log.entries() == {"uid-1": Entry(CLAIM, Stage.PREPARED, LEDS)}
    assert await log.unfinished() == {}


async def test_a_claim_is_unpreparing_before_it_is_undone_and_forgotten_after_it(log: "ClaimLog[list[str]]") -> None:
    async with log.preparing(CLAIM, LEDS):
        pass
    async with log.unpreparing(CLAIM.uid) as entry:
        assert entry is not None
        assert entry.detail == LEDS
        assert on_disk(log) == {"uid-1": "unpreparing"}
    assert await log.entries() == {}


async def test_an_act_that_fails_is_not_finished_and_can_be_undone_or_repeated(log: "ClaimLog[list[str]]") -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            async with log.preparing(CLAIM, LEDS):
                raise ZeroDivisionError
        assert await log.unfinished() == {"uid-1": Entry(CLAIM, Stage.PREPARING, LEDS)}
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            async with log.unpreparing(CLAIM.uid) as entry:
                assert entry is not None
                raise ZeroDivisionError
        assert await log.unfinished() == {"uid-1": Entry(CLAIM, Stage.UNPREPARING, LEDS)}
    async with log.preparing(CLAIM, LEDS) as before:
        assert before == Entry(CLAIM, Stage.UNPREPARING, LEDS)
    assert await log.unfinished() == {}


async def test_what_is_prepared_already_is_known_and_not_written_again(log: "ClaimLog[list[str]]") -> None:
    async with log.preparing(CLAIM, LEDS):
        pass
    inode = os.stat(log._checkpoint.path).st_ino
    async with log.preparing(CLAIM, LEDS) as before:
        assert before == Entry(CLAIM, Stage.PREPARED, LEDS)
    assert os.stat(log._checkpoint.path).st_ino == inode


async def test_an_unknown_claim_needs_no_undoing(log: "ClaimLog[list[str]]") -> None:
    async with log.unpreparing("uid-9") as entry:
        assert entry is None
    assert not await anyio.Path(log._checkpoint.path).exists()


async def test_another_instance_knows_what_the_first_one_did(log: "ClaimLog[list[str]]") -> None:
    other = ClaimLog(log._checkpoint.path, list[str])
    async with log.preparing(CLAIM, LEDS):
        pass
    async with other.unpreparing(CLAIM.uid) as entry:
        assert entry == Entry(CLAIM, Stage.PREPARED, LEDS)
    assert await log.entries() == {}


async def test_many_claims_at_once_do_not_lose_each_other(log: "ClaimLog[list[str]]") -> None:
    async def prepare(number: int) -> None:
        async with log.preparing(ClaimRef("default", "c", f"uid-{number}"), [str(number)]):
            await log.entries()

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(prepare, number)
    entries = await log.entries()
    assert {uid: entry.detail for uid, entry in entries.items()} == {f"uid-{n}": [str(n)] for n in range(20)}
    assert await log.unfinished() == {}


async def test_a_cancelled_act_is_not_finished(log: "ClaimLog[list[str]]") -> None:
    with anyio.CancelScope() as scope:
        async with log.preparing(CLAIM, LEDS):
            scope.cancel()
            await anyio.sleep_forever()
    assert on_disk(log) == {"uid-1": "preparing"}


async def test_a_damaged_log_is_reported_once_and_kept(log: "ClaimLog[list[str]]") -> None:
    async with log.preparing(CLAIM, LEDS):
        pass
    os.truncate(log._checkpoint.path, 40)
    with pytest.raises(StateCorrupt, match=r"is damaged .* It is kept as"):
        async with log.preparing(CLAIM, LEDS):
            raise AssertionError("nothing may be done without an intent")
    async with log.preparing(CLAIM, LEDS) as before:
        assert before is None


async def test_nothing_is_done_if_the_intent_cannot_be_written(tmp_path: Path) -> None:
    os.symlink(tmp_path / "nowhere" / "x", tmp_path / "folder")
    log = ClaimLog(tmp_path / "folder" / "claims.json", list[str])
    with pytest.raises(Unavailable, match="cannot be written"):
        async with log.preparing(CLAIM, LEDS):
            raise AssertionError("nothing may be done without an intent")


async def test_another_kind_of_file_is_left_alone(log: "ClaimLog[list[str]]") -> None:
    Checkpoint(log._checkpoint.path, int).save(7)
    with pytest.raises(StateCorrupt, match="is a checkpoint of kind 'int', not 'ClaimLog'"):
        await log.entries()
    assert Checkpoint(log._checkpoint.path, int).load() == 7


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.integers(0, 9))))
def test_details_of_any_type_come_back(tmp_path_factory: pytest.TempPathFactory, details: dict[str, list[int]]) -> None:
    path = tmp_path_factory.mktemp("log") / "claims.json"

    async def keep() -> dict[str, Entry[dict[str, list[int]]]]:
        async with ClaimLog(path, dict[str, list[int]]).preparing(CLAIM, details):
            pass
        return await ClaimLog(path, dict[str, list[int]]).entries()

    assert anyio.run(keep) == {"uid-1": Entry(CLAIM, Stage.PREPARED, details)}


@pytest.mark.long
@pytest.mark.crash
async def test_a_driver_killed_at_any_moment_knows_all_that_is_switched_on(tmp_path: Path) -> None:
    """And its successor, which undoes what was under way, then has exactly what is prepared switched on."""
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    room = tmp_path / "room"
    os.mkdir(room)
    log = ClaimLog(tmp_path / "claims.json", list[str])
    for round_number in range(6):
        command = [sys.executable, str(DRIVER), str(tmp_path), str(seed + round_number)]
        await anyio.to_thread.run_sync(_run_and_kill, command, moments.randrange(1, 40))
        entries = await log.entries()
        known = {led for entry in entries.values() for led in entry.detail}
        assert set(os.listdir(room)) <= known, seed
        for uid, entry in (await log.unfinished()).items():
            async with log.unpreparing(uid):
                for led in entry.detail:
                    (room / led).unlink(missing_ok=True)
        prepared = {led for entry in (await log.entries()).values() for led in entry.detail}
        assert set(os.listdir(room)) == prepared, seed


def _run_and_kill(command: list[str], steps: int) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(steps):
            assert process.stdout.readline()
        process.kill()


async def test_the_example_in_the_documentation_runs(tmp_path: Path) -> None:
    lines = (claim_log.__doc__ or "").splitlines()
    example = "\n".join(line[4:] if line[:4] == "    " else "" for line in lines if line[:4] in ("    ", ""))
    body = example.replace("self.log = ", "log = ", 1).replace("self.log", "log")
    switched: list[str] = []

    async def switch_on(leds: list[str]) -> None:
        switched.extend(leds)

    async def switch_off(leds: list[str]) -> None:
        switched.clear()

    class Result(msgspec.Struct):
        device: str

    class Claim(msgspec.Struct):
        ref: ClaimRef
        results: list[Result]

    scope = {
        "ClaimLog": ClaimLog,
        "Prepared": lambda result, env: env,
        "directory": tmp_path,
        "switch_on": switch_on,
        "switch_off": switch_off,
    }
    exec(body, scope)
    claim = Claim(CLAIM, [Result("red"), Result("green")])
    assert await scope["prepare"](None, claim) == [{"LED": "red"}, {"LED": "green"}]  # type: ignore[operator]
    assert switched == ["red", "green"]
    await scope["unprepare"](None, CLAIM)  # type: ignore[operator]
    await scope["unprepare"](None, CLAIM)  # type: ignore[operator]
    assert switched == []
