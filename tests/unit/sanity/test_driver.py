"""The driver is a process; its end, its log and its signals are seen."""

from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.sanity import driver as module
from devlet.sanity.check import CannotTell
from devlet.sanity.driver import AttachedDriver, Command, DriverProcess, check_words
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio


def driver(root: Path, *words: str) -> DriverProcess:
    return DriverProcess(Command(list(words)), root, root / "log")


def test_known_words_are_filled_in_and_other_braces_stay() -> None:
    command = Command(["./x", '--device={"dir":"{root}"}', "{other}"], {"D": "{root}/d"})
    filled = command.filled({"root": Path("/r")})
    assert filled.words == ["./x", '--device={"dir":"/r"}', "{other}"]
    assert filled.env == {"D": "/r/d"}
    assert str(filled) == """./x '--device={"dir":"/r"}' '{other}'"""


async def test_how_it_ended_is_known(root: Path) -> None:
    made = driver(root, "sh", "-c", "echo bye; exit 3")
    await made.start()

    async def ending() -> str:
        return made.ending

    assert await until(ending) == "exited with 3"
    assert made.pid is None and made.log() == "bye"
    await made.close()


@pytest.mark.parametrize("said", ["open /dev/led: permission denied", "led0: Operation not permitted", "EACCES"])
async def test_a_driver_that_lacks_permissions_gets_advice(root: Path, said: str) -> None:
    made = driver(root, "sh", "-c", f"echo '{said}'; exit 1")
    await made.start()

    async def ending() -> str:
        return made.ending

    assert await until(ending) == "exited with 1"
    assert "the driver seems to lack permissions" in made.log()
    await made.close()


async def test_it_runs_where_the_caller_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "here").mkdir()
    monkeypatch.chdir(root / "here")
    made = driver(root, "pwd")
    await made.start()

    async def told() -> str:
        return made.log()

    assert await until(told) == str(root / "here")
    await made.close()


async def test_a_driver_ended_by_a_nameless_signal_is_reported(root: Path) -> None:
    made = driver(root, "sh", "-c", "kill -40 $$")
    await made.start()

    async def ending() -> str:
        return made.ending

    assert await until(ending) == "was ended by signal 40"
    await made.close()


async def test_its_children_end_with_it(root: Path) -> None:
    made = driver(root, "sh", "-c", "sleep 60 & echo $!; exec sleep 60")
    await made.start()

    async def child() -> str:
        return made.log()

    number = await until(child)
    assert await made.terminate(10.0)

    async def gone() -> bool:
        return _has_ended(int(number))

    await until(gone)
    assert "left processes behind" in made.log()
    await made.close()


async def test_a_driver_that_went_to_the_background_is_reported(root: Path) -> None:
    made = driver(root, "sh", "-c", "sleep 60 & exit 0")
    await made.start()

    async def ending() -> str:
        return made.ending

    assert await until(ending) == "exited with 0"
    assert "run the driver in the foreground" in made.log()
    await made.close()


def test_a_word_that_is_nearly_one_of_ours_is_an_error() -> None:
    known = ["root", "device_plugins", "cdi"]
    check_words(["x", '{"root": 1}', "{{rot}}", "${rot}", "awk {print}", "{id}", "{root}", "{name}"], known)
    for word in ("{rot}", "--dir={device-plugins}", "{kubeconfig}", "{ROOT}"):
        with pytest.raises(InvalidInput, match=r"\{root\}, \{device_plugins\}, \{cdi\}"):
            check_words([word], known)


async def test_it_is_killed_with_all_that_it_started(root: Path) -> None:
    made = driver(root, "sh", "-c", "sleep 60 & echo $!; wait")
    await made.start()

    async def child() -> str:
        return made.log()

    number = await until(child)
    await made.kill()
    assert made.ending == "was ended by SIGKILL"

    async def gone() -> bool:
        return _has_ended(int(number))

    await until(gone)
    await made.close()


def _has_ended(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().split()[2] == "Z"


async def test_it_may_not_heed_a_signal(root: Path) -> None:
    made = driver(root, "sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done")
    await made.start()

    async def deaf() -> str:
        return made.log()

    await until(deaf)
    assert not await made.terminate(0.2)
    await made.kill()
    await made.close()


async def test_a_program_that_is_not_there_is_an_error(root: Path) -> None:
    with pytest.raises(InvalidInput, match="no such program"):
        await driver(root, "/no/such/program").start()


async def test_a_log_that_grows_too_large_is_cut(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOG_LIMIT", 10)
    made = driver(root, "true")
    (root / "log").write_text("x" * 11)
    made.trim_log()
    assert ((root / "log").stat().st_size, made.written()) == (0, 11)


async def test_one_that_was_attached_is_left_alone() -> None:
    for act in (AttachedDriver().start(), AttachedDriver().kill(), AttachedDriver().terminate(1.0)):
        with pytest.raises(CannotTell, match="attached"):
            await act
