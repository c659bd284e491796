"""Watches: every change once, in order, without a gap, from wherever one asks to begin."""

import anyio
import pytest

from devlet.cluster.client import Cluster, EventType, ListOptions, MergePatch, VersionMatch, WatchEvent, WatchOptions
from devlet.errors import InvalidInput, InvalidObject, Unavailable
from devlet.objects.kinds import CONFIG_MAPS, NAMESPACES, RESOURCE_CLAIMS
from devlet.testing.waiting import deadline
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import Stream, is_end_of_initial_events, watching
from tests.support.cluster_contract.specimens import claim, config_map, unique, version

WATCH_LIST = {"send_initial_events": True, "version_match": VersionMatch.NOT_OLDER_THAN, "bookmarks": True}


async def initial(stream: Stream) -> tuple[list[str], WatchEvent]:
    """Names of the present objects, sorted, and the bookmark behind them."""
    names = []
    while (event := await stream.next(bookmarks=True)).type is not EventType.BOOKMARK:
        assert event.type is EventType.ADDED
        names.append(event.object["metadata"]["name"])
    return sorted(names), event


@pytest.mark.spec("KA-4.4")
class WatchContract(Contract):
    async def test_changes_come_as_they_happen(self, cluster: Cluster, namespace: str) -> None:
        async with watching(cluster, CONFIG_MAPS, namespace) as stream:
            created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
            patched = await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), namespace)
            await cluster.delete(CONFIG_MAPS, "a", namespace)
            events = [await stream.next() for _ in range(3)]
        assert [event.type for event in events] == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]
        assert [event.object for event in events[:2]] == [created, patched]
        assert events[2].object["data"] == {"k": "w"}
        assert version(events[2].object) > version(patched)

    async def test_an_event_is_sent_after_the_change_can_be_read(self, cluster: Cluster, namespace: str) -> None:
        async with watching(cluster, CONFIG_MAPS, namespace) as stream, anyio.create_task_group() as tasks:
            tasks.start_soon(cluster.create, CONFIG_MAPS, config_map("a"), namespace)
            event = await stream.next()
            assert await cluster.get(CONFIG_MAPS, "a", namespace) == event.object

    @pytest.mark.parametrize("start", ["", "0"])
    async def test_without_a_version_the_present_comes_first(
        self, cluster: Cluster, namespace: str, start: str
    ) -> None:
        for name in ("a", "b"):
            await cluster.create(RESOURCE_CLAIMS, claim(name), namespace)
        async with watching(cluster, RESOURCE_CLAIMS, namespace, resource_version=start) as stream:
            assert sorted(await stream.take(2)) == [(EventType.ADDED, "a"), (EventType.ADDED, "b")]
            await cluster.create(RESOURCE_CLAIMS, claim("c"), namespace)
            assert await stream.take(1) == [(EventType.ADDED, "c")]

    async def test_a_watch_goes_on_after_a_version(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(RESOURCE_CLAIMS, claim("a"), namespace)
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        await cluster.create(RESOURCE_CLAIMS, claim("b"), namespace)
        await cluster.delete(RESOURCE_CLAIMS, "a", namespace)
        async with watching(cluster, RESOURCE_CLAIMS, namespace, resource_version=page.resource_version) as stream:
            assert await stream.take(2) == [(EventType.ADDED, "b"), (EventType.DELETED, "a")]
            await cluster.create(RESOURCE_CLAIMS, claim("c"), namespace)
            assert await stream.take(1) == [(EventType.ADDED, "c")]

    async def test_a_watch_resumes_after_each_event_without_gap_or_repeat(
        self, cluster: Cluster, namespace: str
    ) -> None:
        start = (await cluster.list(RESOURCE_CLAIMS, namespace)).resource_version
        await cluster.create(RESOURCE_CLAIMS, claim("a"), namespace)
        for i in range(3):
            patch = MergePatch({"metadata": {"labels": {"i": str(i)}}})
            await cluster.patch(RESOURCE_CLAIMS, "a", patch, namespace)
        await cluster.delete(RESOURCE_CLAIMS, "a", namespace)
        async with watching(cluster, RESOURCE_CLAIMS, namespace, resource_version=start) as stream:
            whole = [await stream.next() for _ in range(5)]
        pieces = []
        for _ in whole:
            async with watching(cluster, RESOURCE_CLAIMS, namespace, resource_version=start) as stream:
                pieces.append(await stream.next())
            start = pieces[-1].object["metadata"]["resourceVersion"]
        assert pieces == whole

    async def test_history_minds_the_selector(self, cluster: Cluster, namespace: str) -> None:
        start = (await cluster.list(CONFIG_MAPS, namespace)).resource_version
        await cluster.create(CONFIG_MAPS, config_map("a", labels={"n": "1"}), namespace)
        await cluster.create(CONFIG_MAPS, config_map("b", labels={"n": "2"}), namespace)
        left = await cluster.patch(CONFIG_MAPS, "a", MergePatch({"metadata": {"labels": {"n": "2"}}}), namespace)
        await cluster.patch(CONFIG_MAPS, "b", MergePatch({"metadata": {"labels": {"n": "1"}}}), namespace)
        options = {"resource_version": start, "label_selector": "n=1"}
        async with watching(cluster, CONFIG_MAPS, namespace, **options) as stream:
            events = [await stream.next() for _ in range(3)]
        seen = [(event.type, event.object["metadata"]["name"]) for event in events]
        assert seen == [(EventType.ADDED, "a"), (EventType.DELETED, "a"), (EventType.ADDED, "b")]
        assert (version(events[1].object), events[1].object["metadata"]["labels"]) == (version(left), {"n": "1"})

    async def test_a_version_of_the_future_is_waited_for_in_silence(self, cluster: Cluster, namespace: str) -> None:
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        future = str(int(page.resource_version) + 10**9)
        options = WatchOptions(resource_version=future, timeout=1)
        async with cluster.watch(RESOURCE_CLAIMS, namespace, options) as events:
            await cluster.create(RESOURCE_CLAIMS, claim("a"), namespace)
            assert await Stream(events).rest() == []

    async def test_a_watch_list_shows_the_present_and_says_where_it_ends(
        self, cluster: Cluster, namespace: str
    ) -> None:
        for name in ("a", "b"):
            await cluster.create(RESOURCE_CLAIMS, claim(name), namespace)
        newest = version(await cluster.create(RESOURCE_CLAIMS, claim("c"), namespace))
        async with watching(cluster, RESOURCE_CLAIMS, namespace, **WATCH_LIST) as stream:
            names, bookmark = await initial(stream)
            assert names == ["a", "b", "c"]
            assert is_end_of_initial_events(bookmark)
            assert (bookmark.object["kind"], bookmark.object["apiVersion"]) == ("ResourceClaim", "resource.k8s.io/v1")
            assert version(bookmark.object) >= newest
            later = await cluster.create(RESOURCE_CLAIMS, claim("d"), namespace)
            assert (await stream.next()).object == later
            assert version(later) > version(bookmark.object)

    async def test_a_watch_list_of_nothing_still_says_so(self, cluster: Cluster, namespace: str) -> None:
        async with watching(cluster, RESOURCE_CLAIMS, namespace, **WATCH_LIST) as stream:
            names, bookmark = await initial(stream)
        assert (names, is_end_of_initial_events(bookmark)) == ([], True)

    async def test_a_watch_list_minds_selector_and_version(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(RESOURCE_CLAIMS, claim("a", labels={"n": "1"}), namespace)
        newest = await cluster.create(RESOURCE_CLAIMS, claim("b"), namespace)
        options = {**WATCH_LIST, "label_selector": "n=1", "resource_version": newest["metadata"]["resourceVersion"]}
        async with watching(cluster, RESOURCE_CLAIMS, namespace, **options) as stream:
            names, bookmark = await initial(stream)
        assert (names, version(bookmark.object) >= version(newest)) == (["a"], True)

    async def test_a_watch_list_of_a_version_far_ahead_is_too_early(self, cluster: Cluster, namespace: str) -> None:
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        options = {**WATCH_LIST, "resource_version": str(int(page.resource_version) + 10**12)}
        with pytest.raises(Unavailable):
            async with watching(cluster, RESOURCE_CLAIMS, namespace, **options) as stream:
                await stream.next(bookmarks=True)

    async def test_without_initial_events_the_watch_starts_now(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(RESOURCE_CLAIMS, claim("a"), namespace)
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        options = {**WATCH_LIST, "send_initial_events": False}
        async with watching(cluster, RESOURCE_CLAIMS, namespace, **options) as stream:
            await cluster.create(RESOURCE_CLAIMS, claim("b"), namespace)
            assert await stream.take(1) == [(EventType.ADDED, "b")]
        options["resource_version"] = page.resource_version
        async with watching(cluster, RESOURCE_CLAIMS, namespace, **options) as stream:
            assert await stream.take(1) == [(EventType.ADDED, "b")]

    @pytest.mark.parametrize(
        "options",
        [
            WatchOptions(send_initial_events=True, bookmarks=True),
            WatchOptions(send_initial_events=False),
            WatchOptions(send_initial_events=True, version_match=VersionMatch.EXACT, resource_version="5"),
            WatchOptions(version_match=VersionMatch.NOT_OLDER_THAN),
            WatchOptions(version_match=VersionMatch.EXACT, resource_version="5"),
        ],
    )
    async def test_options_that_contradict_each_other_are_refused(
        self, cluster: Cluster, namespace: str, options: WatchOptions
    ) -> None:
        with pytest.raises(InvalidObject):
            async with cluster.watch(RESOURCE_CLAIMS, namespace, options) as events:
                await anext(events)

    @pytest.mark.parametrize("start", ["text", "-1", "1.5"])
    async def test_a_version_is_a_number(self, cluster: Cluster, namespace: str, start: str) -> None:
        with pytest.raises(self.bad_request if self.hides_bad_requests else InvalidInput):
            async with cluster.watch(RESOURCE_CLAIMS, namespace, WatchOptions(resource_version=start)) as events:
                await anext(events)

    async def test_a_timeout_ends_the_stream_cleanly(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(RESOURCE_CLAIMS, claim("a"), namespace)
        async with watching(cluster, RESOURCE_CLAIMS, namespace, resource_version="", timeout=1) as stream:
            events = await stream.rest()
        assert [(event.type, event.object["metadata"]["name"]) for event in events] == [(EventType.ADDED, "a")]

    async def test_without_leave_there_are_no_bookmarks(self, cluster: Cluster, namespace: str) -> None:
        async with watching(cluster, RESOURCE_CLAIMS, namespace, timeout=1) as stream:
            assert await stream.rest() == []

    async def test_bookmarks_hold_nothing_but_a_version(self, cluster: Cluster, namespace: str) -> None:
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        options = {"resource_version": page.resource_version, "bookmarks": True, "timeout": 1}
        async with watching(cluster, RESOURCE_CLAIMS, namespace, **options) as stream:
            events = await stream.rest()
        for event in events:
            assert event.type is EventType.BOOKMARK
            assert version(event.object) >= int(page.resource_version)
            assert not event.object["metadata"].get("name")

    async def test_one_namespace_hears_nothing_of_another(self, cluster: Cluster, namespace: str) -> None:
        other = unique("ns")
        await cluster.create(NAMESPACES, specimens.named(other))
        async with (
            watching(cluster, RESOURCE_CLAIMS, namespace) as here,
            watching(cluster, RESOURCE_CLAIMS, label_selector="both") as everywhere,
        ):
            await cluster.create(RESOURCE_CLAIMS, claim("a", labels={"both": ""}), other)
            await cluster.create(RESOURCE_CLAIMS, claim("b", labels={"both": ""}), namespace)
            assert await here.take(1) == [(EventType.ADDED, "b")]
            assert await everywhere.take(2) == [(EventType.ADDED, "a"), (EventType.ADDED, "b")]

    async def test_all_watchers_see_the_same_order_under_load(self, cluster: Cluster, namespace: str) -> None:
        writers, each = 16, 6
        streams: list[list[int]] = [[], []]
        page = await cluster.list(RESOURCE_CLAIMS, namespace)

        async def write(i: int) -> None:
            await cluster.create(RESOURCE_CLAIMS, claim(f"c{i}"), namespace)
            for n in range(each - 2):
                patch = MergePatch({"metadata": {"labels": {"n": str(n)}}})
                await cluster.patch(RESOURCE_CLAIMS, f"c{i}", patch, namespace)
            await cluster.delete(RESOURCE_CLAIMS, f"c{i}", namespace)

        async def read(seen: list[int]) -> None:
            async with watching(cluster, RESOURCE_CLAIMS, namespace, resource_version=page.resource_version) as stream:
                seen.extend([version((await stream.next()).object) for _ in range(writers * each)])

        with deadline():
            async with anyio.create_task_group() as tasks:
                for seen in streams:
                    tasks.start_soon(read, seen)
                for i in range(writers):
                    tasks.start_soon(write, i)
        assert streams[0] == streams[1] == sorted(set(streams[0]))

    async def test_list_and_watch_rebuild_every_state(self, cluster: Cluster, namespace: str) -> None:
        """What an informer relies on: a list, and the events after its version, are the present."""
        copy: dict[str, int] = {}

        async def write() -> None:
            for i in range(12):
                await cluster.create(RESOURCE_CLAIMS, claim(f"c{i}"), namespace)
                if i % 3 == 0:
                    await cluster.delete(RESOURCE_CLAIMS, f"c{i}", namespace)
            await cluster.create(RESOURCE_CLAIMS, claim("last"), namespace)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            page = await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions())
            copy |= {item["metadata"]["name"]: version(item) for item in page.items}
            async with watching(cluster, RESOURCE_CLAIMS, namespace, resource_version=page.resource_version) as stream:
                while "last" not in copy:
                    event = await stream.next()
                    name = event.object["metadata"]["name"]
                    assert (name in copy) is (event.type is not EventType.ADDED)
                    if event.type is EventType.DELETED:
                        del copy[name]
                    else:
                        copy[name] = version(event.object)
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        assert copy == {item["metadata"]["name"]: version(item) for item in page.items}
