from pathlib import Path

import pytest

from devlet.cluster.client import ListOptions, MergePatch, VersionMatch
from devlet.cluster.store.pages import Position
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.errors import Expired
from devlet.objects.kinds import CONFIG_MAPS, SECRETS
from devlet.testing.fake_clock import FakeClock
from tests.support.cluster_contract.reading import names
from tests.support.cluster_contract.specimens import config_map, named

pytestmark = [pytest.mark.anyio, pytest.mark.spec("KA-4.5")]
SHORT = Settings(history_age=10, history_events=1, compact_every=5)


async def fill(store: Store, number: int = 4) -> list[str]:
    made = [f"c{i}" for i in range(number)]
    for name in made:
        await store.create(CONFIG_MAPS, config_map(name), "default")
    return made


async def grow_old(store: Store, clock: FakeClock) -> None:
    """Let a compaction happen that forgets all but the last change."""
    await clock.sleeping(1)
    await clock.advance(20)
    await store.create(SECRETS, named(), "default")
    await clock.advance(20)


async def test_a_page_of_an_expired_state_says_how_to_continue(path: Path) -> None:
    clock = FakeClock()
    async with open_store(path, SHORT, clock) as store:
        made = await fill(store)
        first = await store.list(CONFIG_MAPS, "default", ListOptions(limit=2))
        await store.delete(CONFIG_MAPS, made[2], "default")
        await grow_old(store, clock)
        with pytest.raises(Expired) as expired:
            await store.list(CONFIG_MAPS, "default", ListOptions(limit=2, continue_=first.continue_))
        assert "The provided continue parameter is too old" in str(expired.value)
        rest = await store.list(CONFIG_MAPS, "default", ListOptions(limit=2, continue_=expired.value.fresh_continue))
        assert (names(rest), rest.continue_) == ([made[3]], "")
        assert int(rest.resource_version) > int(first.resource_version)


async def test_an_exact_version_that_is_forgotten_is_expired(path: Path) -> None:
    clock = FakeClock()
    async with open_store(path, SHORT, clock) as store:
        await fill(store)
        page = await store.list(CONFIG_MAPS, "default")
        exact = ListOptions(resource_version=page.resource_version, version_match=VersionMatch.EXACT)
        await store.patch(CONFIG_MAPS, "c0", MergePatch({"data": {"k": "w"}}), "default")
        assert [d["data"] for d in (await store.list(CONFIG_MAPS, "default", exact)).items] == [{"k": "v"}] * 4
        await grow_old(store, clock)
        with pytest.raises(Expired):
            await store.list(CONFIG_MAPS, "default", exact)


async def test_pages_and_exact_versions_survive_a_restart(path: Path) -> None:
    async with open_store(path) as store:
        made = await fill(store)
        first = await store.list(CONFIG_MAPS, "default", ListOptions(limit=2))
        await store.delete(CONFIG_MAPS, made[3], "default")
    async with open_store(path) as store:
        rest = await store.list(CONFIG_MAPS, "default", ListOptions(limit=2, continue_=first.continue_))
        assert (names(rest), rest.resource_version) == (made[2:], first.resource_version)


async def test_a_continuation_from_the_future_shows_the_present(path: Path) -> None:
    """A token that a database since replaced had given out."""
    async with open_store(path) as store:
        made = await fill(store)
        token = Position(10**18, ("default", made[1])).encode()
        page = await store.list(CONFIG_MAPS, "default", ListOptions(continue_=token))
        assert names(page) == made[2:]
