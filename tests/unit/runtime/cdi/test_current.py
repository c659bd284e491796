import json
import threading
from pathlib import Path

import anyio
import pytest

from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.current import CurrentSpecs
from devlet.runtime.cdi.registry import Registry
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio


def write(folder: Path, name: str) -> None:
    device = {"name": name, "containerEdits": {"env": ["A=1"]}}
    spec = {"cdiVersion": "0.5.0", "kind": "v/c", "devices": [device]}
    (folder / f"{name}.json").write_text(json.dumps(spec))


class HeldCache(Cache):
    """Looks only when it is let, and knows how often it looked, and with how many at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__([folder])
        self.let = threading.Semaphore(0)
        self.looks = 0
        self.looking = 0
        self.most = 0

    async def is_looking(self) -> bool:
        return self.looking == 1

    def refresh(self) -> Registry:
        self.looks += 1
        self.looking += 1
        self.most = max(self.most, self.looking)
        assert self.let.acquire(timeout=60)
        found = super().refresh()
        self.looking -= 1
        return found


async def test_what_was_written_before_the_question_is_in_the_answer(tmp_path: Path) -> None:
    specs = CurrentSpecs(Cache([tmp_path]))
    assert (await specs.registry()).devices == {}
    write(tmp_path, "a")
    assert list((await specs.registry()).devices) == ["v/c=a"]


async def test_those_who_ask_during_a_look_share_the_next_one(tmp_path: Path) -> None:
    cache = HeldCache(tmp_path)
    specs = CurrentSpecs(cache)
    answers: list[list[str]] = []

    async def ask() -> None:
        answers.append(list((await specs.registry()).devices))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await until(cache.is_looking)
        for _ in range(20):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        write(tmp_path, "late")
        cache.let.release()
        cache.let.release()
    assert len(answers) == 21
    assert all(answer == ["v/c=late"] for answer in answers[1:])
    assert (cache.looks, cache.most) == (2, 1)


async def test_a_question_that_is_given_up_leaves_no_harm(tmp_path: Path) -> None:
    cache = HeldCache(tmp_path)
    specs = CurrentSpecs(cache)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(specs.registry)
        await until(cache.is_looking)
        tasks.cancel_scope.cancel()
        cache.let.release()
    write(tmp_path, "a")
    cache.let.release()
    assert list((await specs.registry()).devices) == ["v/c=a"]
