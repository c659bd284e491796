import logging
import shutil
from pathlib import Path

import anyio
import pytest

from devlet.errors import Unavailable
from devlet.kit.kept_files import KeptDirectory, KeptFile
from devlet.kit.parts import running
from devlet.kit.upkeep import Settings, Upkeep, identity
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio


class Thing:
    """Something that is kept, and counts the looks at it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self.looks = 0

    async def restore(self) -> str:
        self.looks += 1
        if self.problem:
            raise Unavailable(self.problem)
        if self.path.exists():
            return ""
        self.path.touch()
        return "thing is back"


@pytest.fixture
def upkeep(root: Path) -> Upkeep:
    return Upkeep(root, Settings(settle=0.01))


@pytest.fixture
def thing(root: Path) -> Thing:
    (root / "thing").touch()
    return Thing(root / "thing")


async def until_it_exists(path: Path) -> None:
    await until(anyio.Path(path).exists)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.message) for record in caplog.records]


async def test_what_was_removed_is_restored_with_one_warning(
    upkeep: Upkeep, thing: Thing, caplog: pytest.LogCaptureFixture
) -> None:
    with upkeep.keeping(thing), caplog.at_level(logging.INFO):
        async with running(upkeep.run):
            thing.path.unlink()
            await until_it_exists(thing.path)
    assert lines(caplog) == [("WARNING", "thing is back")]
    assert caplog.records[0].__dict__["facts"] == {"path": thing.path}


async def test_what_is_no_longer_kept_stays_removed(upkeep: Upkeep, thing: Thing) -> None:
    with upkeep.keeping(thing):
        pass
    thing.path.unlink()
    await upkeep.restore()
    assert not thing.path.exists()


async def test_a_problem_is_logged_once_shown_while_it_lasts_and_forgotten_with_its_thing(
    upkeep: Upkeep, thing: Thing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with upkeep.keeping(thing):
        for problem in ("in the way", "in the way", "still in the way", ""):
            thing.problem = problem
            await upkeep.restore()
            assert upkeep.problem() == (problem or None)
        thing.problem = "in the way"
        await upkeep.restore()
    assert upkeep.problem() is None
    failed = ("ERROR", "cannot be repaired")
    assert lines(caplog) == [failed, failed, ("INFO", "in order again"), failed]


async def test_one_problem_does_not_keep_others_from_being_restored(upkeep: Upkeep, thing: Thing, root: Path) -> None:
    first = Thing(root / "first")
    first.problem = "in the way"
    with upkeep.keeping(first, thing):
        thing.path.unlink()
        await upkeep.restore()
    assert thing.path.exists()


async def test_a_directory_is_restored_before_what_is_in_it(root: Path, upkeep: Upkeep) -> None:
    directory = root / "d"
    directory.mkdir(0o750)
    (directory / "f").write_text("content")
    kept = KeptDirectory(directory), KeptFile(directory / "f")
    with upkeep.keeping(*kept):
        async with running(upkeep.run):
            for _ in range(3):
                shutil.rmtree(directory)
                await until_it_exists(directory / "f")
    assert (directory / "f").read_text() == "content"


async def test_without_an_event_a_removal_is_noticed_at_the_next_look(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "deep").touch()  # further down than events are asked for
    thing = Thing(root / "a" / "b" / "deep")
    upkeep = Upkeep(root, Settings(settle=0.01, look=0.02))
    with upkeep.keeping(thing):
        async with running(upkeep.run):
            thing.path.unlink()
            await until_it_exists(thing.path)


async def test_files_that_are_not_kept_cause_no_look(root: Path, upkeep: Upkeep, thing: Thing) -> None:
    with upkeep.keeping(thing):
        async with running(upkeep.run):
            for number in range(20):
                (root / f"other-{number}").touch()
            thing.path.unlink()
            await until_it_exists(thing.path)
    assert thing.looks <= 2  # one for the removal, and one for what was put back


async def test_a_root_that_was_removed_or_replaced_is_a_problem_and_nothing_is_put_into_another_one(
    root: Path, upkeep: Upkeep, thing: Thing, caplog: pytest.LogCaptureFixture
) -> None:
    problem = f"{root} was removed or replaced while devlet runs: restart devlet"

    async def shown() -> str | None:
        return upkeep.problem()

    here, away = anyio.Path(root), anyio.Path(f"{root}-away")
    with upkeep.keeping(thing):
        async with running(upkeep.run):
            await here.rename(away)
            await until(shown, lambda found: found == problem)
            await here.mkdir()
            await upkeep.restore()
            assert upkeep.problem() == problem
            await here.rmdir()  # which is empty
            await away.rename(here)
            await until(shown, lambda found: found is None)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["cannot be repaired"]


def test_the_identity_is_that_of_what_is_there_now(root: Path) -> None:
    assert identity(root / "none") is None
    before = identity(root)
    assert before == identity(root)
    assert before is not None
