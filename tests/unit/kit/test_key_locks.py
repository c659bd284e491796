import anyio
import pytest

from devlet.kit.key_locks import KeyLocks
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


async def test_one_key_is_held_by_one_at_a_time_and_given_on_in_turn() -> None:
    locks: KeyLocks[str] = KeyLocks()
    order: list[str] = []

    async def work(name: str) -> None:
        async with locks.hold(["a"]):
            order.append(f"{name} begins")
            await anyio.lowlevel.checkpoint()
            order.append(f"{name} ends")

    async with anyio.create_task_group() as tasks:
        for name in ("one", "two", "three"):
            tasks.start_soon(work, name)
    assert order == [f"{name} {verb}" for name in ("one", "two", "three") for verb in ("begins", "ends")]
    assert not locks.is_held("a")


async def test_different_keys_do_not_wait_for_each_other() -> None:
    locks: KeyLocks[str] = KeyLocks()
    with deadline():
        async with locks.hold(["a"]), locks.hold(["b"]):
            assert locks.is_held("a") and locks.is_held("b")


async def test_taking_several_keys_in_any_order_never_deadlocks() -> None:
    locks: KeyLocks[str] = KeyLocks()

    async def work(keys: str) -> None:
        for _ in range(20):
            async with locks.hold(keys):
                await anyio.lowlevel.checkpoint()

    with deadline():
        async with anyio.create_task_group() as tasks:
            for keys in ("ab", "ba", "cab", "bca", "ac"):
                tasks.start_soon(work, keys)
    assert not any(map(locks.is_held, "abc"))


async def test_a_key_can_be_given_back_before_the_others() -> None:
    locks: KeyLocks[str] = KeyLocks()
    async with locks.hold(["a", "b"]) as held:
        held.release("a")
        held.release("a")
        assert not locks.is_held("a") and locks.is_held("b")
        with deadline():
            async with locks.hold(["a"]):
                pass


async def test_a_cancelled_waiter_leaves_no_trace() -> None:
    locks: KeyLocks[str] = KeyLocks()
    async with locks.hold(["b"]):
        with anyio.move_on_after(0.01):
            async with locks.hold(["a", "b"]):
                raise AssertionError("it is held by somebody else")
        assert not locks.is_held("a")
    assert not locks.is_held("b")


async def test_no_task_holds_a_key_while_it_waits_for_another() -> None:
    locks: KeyLocks[str] = KeyLocks()
    order: list[str] = []

    async def work(keys: str) -> None:
        async with locks.hold(keys):
            order.append(keys)

    async with anyio.create_task_group() as tasks:
        async with locks.hold("z"):
            tasks.start_soon(work, "az")
            await anyio.wait_all_tasks_blocked()
            with deadline():
                await work("a")
    assert order == ["a", "az"] and not locks.is_held("a")


async def test_a_key_that_one_cannot_use_yet_goes_to_the_next() -> None:
    locks: KeyLocks[str] = KeyLocks()
    order: list[str] = []

    async def work(keys: str) -> None:
        async with locks.hold(keys):
            order.append(keys)

    async with anyio.create_task_group() as tasks:
        async with locks.hold("z"):
            async with locks.hold("a"):
                tasks.start_soon(work, "az")
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(work, "a")
                await anyio.wait_all_tasks_blocked()
            await anyio.wait_all_tasks_blocked()
            assert order == ["a"]
    assert order == ["a", "az"]
