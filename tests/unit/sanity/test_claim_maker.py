"""Claims are allocated as a scheduler would do it, and are gone afterwards."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devlet.cluster.store.store import open_store
from devlet.errors import NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.sanity.check import CannotTell
from devlet.sanity.claim_maker import ClaimMaker, Offer, Want
from devlet.sanity.dra_client import Ref

pytestmark = pytest.mark.anyio

LEDS = [Offer("leds", {"name": f"led-{number}"}) for number in range(2)]
TAINTED = Offer("leds", {"name": "sick", "taints": [{"key": "v.com/sick", "effect": "NoSchedule"}]})
LIGHT = {"light": {"value": "10"}}
SHARED = Offer("leds", {"name": "shared", "allowMultipleAllocations": True, "capacity": LIGHT})


def part(name: str) -> Offer:
    return Offer("leds", {"name": name, "consumesCounters": [{"counterSet": "board", "counters": {}}]})


@asynccontextmanager
async def maker(root: Path, offers: Sequence[Offer], ended: list[Ref]) -> AsyncIterator[ClaimMaker]:
    async def unprepare(ref: Ref) -> None:
        ended.append(ref)

    async with open_store(root / "cluster.db") as store:
        yield ClaimMaker(store, lambda: "led.example.com", "n1", lambda: offers, unprepare)


async def read(made: ClaimMaker, ref: Ref) -> Document:
    return await made.cluster.get(RESOURCE_CLAIMS, ref.name, ref.namespace)


async def test_a_claim_is_given_devices_and_goes_with_them(root: Path) -> None:
    ended: list[Ref] = []
    async with maker(root, LEDS, ended) as made:
        async with made.claim([Want("first"), Want("second", alternative="sub")]) as claim:
            stored = await read(made, claim.ref)
            results = stored["status"]["allocation"]["devices"]["results"]
            assert [(each["request"], each["device"]) for each in results] == [
                ("first", "led-0"),
                ("second/sub", "led-1"),
            ]
            assert claim.devices == {("leds", "led-0"), ("leds", "led-1")}
            with pytest.raises(CannotTell, match="this check needs 1 free device, and the driver has published 0"):
                made.take(1)
        assert ended == [claim.ref]
        with pytest.raises(NotFound):
            await read(made, claim.ref)
        assert len(made.take(2)) == 2


async def test_one_that_is_not_allocated_has_no_status(root: Path) -> None:
    async with maker(root, LEDS, []) as made, made.claim(allocated=False) as claim:
        assert not (await read(made, claim.ref)).get("status")


async def test_tainted_devices_and_those_of_the_same_counters_are_not_given(root: Path) -> None:
    async with maker(root, [TAINTED, part("half"), part("other-half"), *LEDS], []) as made:
        assert [each.name for each in made.take(3)] == ["half", "led-0", "led-1"]


async def test_a_device_that_may_be_shared_is_given_in_shares(root: Path) -> None:
    async with maker(root, [*LEDS, SHARED], []) as made:
        offers = made.take(1, shared=True)
        async with made.claim([Want(offers=offers, shares=2)]) as claim:
            assert len({each["shareID"] for each in claim.results}) == 2
            assert [each["consumedCapacity"] for each in claim.results] == [{"light": "5"}] * 2
            [request] = (await read(made, claim.ref))["spec"]["devices"]["requests"]
            assert request["exactly"]["count"] == 2
            assert request["exactly"]["capacity"] == {"requests": {"light": "5"}}


async def test_parameters_and_results_of_others_are_in_the_allocation(root: Path) -> None:
    other = {"request": "other", "driver": "other.example.com", "pool": "p", "device": "d"}
    async with maker(root, LEDS, []) as made:
        config = made.config({"color": "red"}, "other.example.com")
        async with made.claim(configs=[config], more=[other], namespace="elsewhere") as claim:
            devices = (await read(made, claim.ref))["status"]["allocation"]["devices"]
            assert [each["driver"] for each in devices["results"]] == ["led.example.com", "other.example.com"]
            assert devices["config"][0]["opaque"]["driver"] == "other.example.com"


async def test_where_several_are_better_one_will_do(root: Path) -> None:
    async with maker(root, LEDS, []) as made:
        assert made.take_up_to(2) == LEDS
        assert made.take_up_to(3) == LEDS
        async with made.claim([Want(offers=LEDS)]):
            with pytest.raises(CannotTell, match="this check needs 1 free device"):
                made.take_up_to(2)
