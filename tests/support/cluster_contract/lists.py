"""Lists: one consistent state, in order, in pages, at the version one asks for."""

import anyio
import pytest

from devlet.cluster.client import Cluster, ListOptions, MergePatch, ObjectList, VersionMatch
from devlet.errors import BadRequest, Expired, InvalidInput, InvalidObject, Unavailable
from devlet.objects.kinds import CONFIG_MAPS, NAMESPACES, RESOURCE_CLAIMS
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import names
from tests.support.cluster_contract.specimens import claim, config_map, unique, version

FUTURE = 10**15  # versions beyond the current one


async def fill(cluster: Cluster, namespace: str, number: int) -> list[str]:
    made = [f"c{i:02}" for i in range(number)]
    for name in made:
        await cluster.create(RESOURCE_CLAIMS, claim(name), namespace)
    return made


async def pages(cluster: Cluster, namespace: str, limit: int) -> list[ObjectList]:
    found = [await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(limit=limit))]
    while found[-1].continue_:
        options = ListOptions(limit=limit, continue_=found[-1].continue_)
        found.append(await cluster.list(RESOURCE_CLAIMS, namespace, options))
    return found


@pytest.mark.spec("KA-4.1")
class ListContract(Contract):
    async def test_an_empty_list_has_a_version(self, cluster: Cluster, namespace: str) -> None:
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        assert (list(page.items), page.continue_, page.remaining) == ([], "", None)
        assert int(page.resource_version) > 0

    async def test_items_are_complete_and_in_order(self, cluster: Cluster, namespace: str) -> None:
        for name in ("b", "a-1", "a", "c", "a.b"):
            await cluster.create(CONFIG_MAPS, config_map(name), namespace)
        page = await cluster.list(CONFIG_MAPS, namespace)
        assert names(page) == ["a", "a-1", "a.b", "b", "c"]
        for name in names(page):
            assert await cluster.get(CONFIG_MAPS, name, namespace) in list(page.items)

    async def test_all_namespaces_come_in_order(self, cluster: Cluster, namespace: str) -> None:
        mark = unique("mark")
        others = sorted(unique(prefix) for prefix in ("a", "b"))
        for other in others:
            await cluster.create(NAMESPACES, specimens.named(other))
        for where in [*others, namespace]:
            for name in ("y", "x"):
                await cluster.create(CONFIG_MAPS, config_map(name, labels={"mark": mark}), where)
        page = await cluster.list(CONFIG_MAPS, "", ListOptions(label_selector=f"mark={mark}"))
        keys = [(d["metadata"]["namespace"], d["metadata"]["name"]) for d in page.items]
        assert keys == sorted(keys)
        assert len(keys) == 6

    async def test_a_list_knows_its_version(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(RESOURCE_CLAIMS, claim("a"), namespace)
        first = await cluster.list(RESOURCE_CLAIMS, namespace)
        await cluster.create(CONFIG_MAPS, config_map("other-kind"), namespace)
        second = await cluster.list(RESOURCE_CLAIMS, namespace)
        assert version(created) <= int(first.resource_version) < int(second.resource_version)

    async def test_pages_add_up(self, cluster: Cluster, namespace: str) -> None:
        made = await fill(cluster, namespace, 5)
        found = await pages(cluster, namespace, 2)
        assert [names(page) for page in found] == [made[:2], made[2:4], made[4:]]
        assert len({page.resource_version for page in found}) == 1
        assert [page.remaining for page in found] == [3, 1, None]

    async def test_a_page_that_holds_all_has_no_continuation(self, cluster: Cluster, namespace: str) -> None:
        made = await fill(cluster, namespace, 3)
        for limit in (3, 4, 0, -1):
            page = await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(limit=limit))
            assert (names(page), page.continue_) == (made, "")

    async def test_pages_show_one_state_while_others_write(self, cluster: Cluster, namespace: str) -> None:
        made = await fill(cluster, namespace, 9)
        before = await cluster.list(RESOURCE_CLAIMS, namespace)
        found = [await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(limit=3))]
        await cluster.create(RESOURCE_CLAIMS, claim("c03-new"), namespace)
        await cluster.delete(RESOURCE_CLAIMS, made[4], namespace)
        await cluster.patch(RESOURCE_CLAIMS, made[5], MergePatch({"metadata": {"labels": {"a": "b"}}}), namespace)
        found.append(
            await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(limit=3, continue_=found[-1].continue_))
        )
        await cluster.delete(RESOURCE_CLAIMS, made[7], namespace)
        await cluster.create(RESOURCE_CLAIMS, claim(made[4]), namespace)
        found.append(
            await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(limit=3, continue_=found[-1].continue_))
        )
        assert [item for page in found for item in page.items] == list(before.items)
        assert [page.remaining for page in found] == [6, 3, None]
        assert {page.resource_version for page in found} == {found[0].resource_version}

    async def test_pages_stay_consistent_under_load(self, cluster: Cluster, namespace: str) -> None:
        """Pairs are made and removed; a consistent list never shows a second without its first."""
        async with anyio.create_task_group() as tasks:

            async def churn(i: int) -> None:
                while True:
                    for name in (f"a{i}", f"z{i}"):
                        await cluster.create(RESOURCE_CLAIMS, claim(name), namespace)
                    for name in (f"z{i}", f"a{i}"):
                        await cluster.delete(RESOURCE_CLAIMS, name, namespace)

            for i in range(4):
                tasks.start_soon(churn, i)
            for _ in range(10):
                found = {name for page in await pages(cluster, namespace, 1) for name in names(page)}
                assert {f"a{name[1:]}" for name in found if name.startswith("z")} <= found
            tasks.cancel_scope.cancel()

    async def test_pages_of_selected_items_add_up(self, cluster: Cluster, namespace: str) -> None:
        for i in range(6):
            labels = {"parity": "even" if i % 2 == 0 else "odd"}
            await cluster.create(RESOURCE_CLAIMS, claim(f"c{i}", labels=labels), namespace)
        found: list[str] = []
        options = ListOptions("parity=even", limit=1)
        while True:
            page = await cluster.list(RESOURCE_CLAIMS, namespace, options)
            assert page.remaining is None
            found += names(page)
            if not page.continue_:
                break
            options = ListOptions("parity=even", limit=1, continue_=page.continue_)
        assert found == ["c0", "c2", "c4"]

    @pytest.mark.parametrize("token", ["garbage", "e30", "{}", "ä", "x" * 5000, "bnVsbA", "AAAA===="])
    async def test_a_garbled_continuation_is_a_bad_request(self, cluster: Cluster, namespace: str, token: str) -> None:
        with pytest.raises(BadRequest):
            await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(limit=1, continue_=token))

    async def test_a_continuation_has_its_own_version(self, cluster: Cluster, namespace: str) -> None:
        await fill(cluster, namespace, 2)
        page = await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(limit=1))
        options = ListOptions(limit=1, continue_=page.continue_, resource_version=page.resource_version)
        with pytest.raises(BadRequest):
            await cluster.list(RESOURCE_CLAIMS, namespace, options)

    @pytest.mark.parametrize("match", [VersionMatch.ANY, VersionMatch.NOT_OLDER_THAN])
    async def test_any_version_and_versions_of_the_past_show_the_present(
        self, cluster: Cluster, namespace: str, match: VersionMatch
    ) -> None:
        made = await fill(cluster, namespace, 2)
        old = (await cluster.get(RESOURCE_CLAIMS, made[0], namespace))["metadata"]["resourceVersion"]
        for wanted in ("0", old):
            options = ListOptions(resource_version=wanted, version_match=match)
            page = await cluster.list(RESOURCE_CLAIMS, namespace, options)
            assert int(page.resource_version) >= int(wanted)
            assert set(names(page)) <= set(made)
        assert names(page)[:1] == made[:1]

    async def test_an_exact_version_shows_the_state_it_was(self, cluster: Cluster, namespace: str) -> None:
        made = await fill(cluster, namespace, 3)
        before = await cluster.list(RESOURCE_CLAIMS, namespace)
        exact = ListOptions(resource_version=before.resource_version, version_match=VersionMatch.EXACT)
        assert list((await cluster.list(RESOURCE_CLAIMS, namespace, exact)).items) == list(before.items)
        await cluster.delete(RESOURCE_CLAIMS, made[0], namespace)
        await cluster.patch(RESOURCE_CLAIMS, made[1], MergePatch({"metadata": {"labels": {"a": "b"}}}), namespace)
        await cluster.create(RESOURCE_CLAIMS, claim("later"), namespace)
        if not self.keeps_snapshots:
            with pytest.raises(Expired):
                await cluster.list(RESOURCE_CLAIMS, namespace, exact)
            return
        then = await cluster.list(RESOURCE_CLAIMS, namespace, exact)
        assert list(then.items) == list(before.items)
        assert then.resource_version == before.resource_version

    @pytest.mark.parametrize(
        ("wanted", "match"),
        [("", VersionMatch.NOT_OLDER_THAN), ("", VersionMatch.EXACT), ("0", VersionMatch.EXACT)],
    )
    async def test_a_match_without_a_version_is_refused(
        self, cluster: Cluster, namespace: str, wanted: str, match: VersionMatch
    ) -> None:
        with pytest.raises(InvalidObject) as refused:
            options = ListOptions(resource_version=wanted, version_match=match)
            await cluster.list(RESOURCE_CLAIMS, namespace, options)
        assert "resourceVersionMatch" in {cause.field for cause in refused.value.causes}

    @pytest.mark.parametrize("wanted", ["text", "-1", "1.5", "0x10", "²"])
    async def test_a_version_is_a_number(self, cluster: Cluster, namespace: str, wanted: str) -> None:
        with pytest.raises(InvalidInput):
            await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(resource_version=wanted))

    async def test_a_version_of_the_future_is_too_large(self, cluster: Cluster, namespace: str) -> None:
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        future = str(int(page.resource_version) + FUTURE)
        with pytest.raises(Unavailable, match="Too large resource version") as refused:
            await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(resource_version=future))
        assert refused.value.retry_after >= 1

    async def test_a_version_that_is_about_to_come_is_waited_for(self, cluster: Cluster, namespace: str) -> None:
        page = await cluster.list(RESOURCE_CLAIMS, namespace)
        found: list[str] = []

        async def wait() -> None:
            options = ListOptions(resource_version=str(int(page.resource_version) + 1))
            found.extend(names(await cluster.list(RESOURCE_CLAIMS, namespace, options)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await cluster.create(RESOURCE_CLAIMS, claim("coming"), namespace)
        assert found == ["coming"]
