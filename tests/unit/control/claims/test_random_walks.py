"""Random histories of pods and claims. At the end every pod has its claims, and there are no others."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.cluster.client import DeleteOptions
from devlet.errors import DevletError, Unavailable
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS, Resource
from devlet.testing.waiting import until

if TYPE_CHECKING:
    from tests.unit.control.claims.conftest import World

NS = "default"
POD = st.sampled_from(["p0", "p1", "p2"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), POD, st.sampled_from([{"a": "t"}, {"a": "t", "b": "t"}, {"a": ":shared"}])),
        st.tuples(st.just("create on a node"), POD, st.just({"a": "t", "s": ":shared"})),
        st.tuples(st.just("schedule"), POD),
        st.tuples(st.just("finish"), POD),
        st.tuples(st.just("remove"), POD),
        st.tuples(st.just("ask to end"), POD),
        st.tuples(st.just("replace"), POD),
        st.tuples(st.just("delete a claim"), st.integers(0, 5)),
        st.tuples(st.just("lose requests"), st.integers(1, 3)),
        st.tuples(st.just("lose answers"), st.integers(1, 3)),
        st.tuples(st.just("let time pass")),
        st.tuples(st.just("take a breath"), st.integers(0, 30)),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=25,
)


class Losses:
    """Requests that are lost, or whose answers are lost."""

    def __init__(self, world: "World") -> None:
        self.requests = 0
        self.answers = 0
        self._world = world
        world.watched.before = self.before

    async def before(self, verb: str, resource: Resource, args: Any) -> None:
        if self.requests:
            self.requests -= 1
            raise Unavailable("the request was lost")
        if self.answers:
            self.answers -= 1
            await self._do(verb, resource, args)
            raise Unavailable("the answer was lost")

    async def _do(self, verb: str, resource: Resource, args: Any) -> None:
        more = {"subresource": "status"} if verb == "patch" and "status" in args[1].document else {}
        if verb == "patch" and resource == PODS:
            return  # apply can be repeated, so a lost answer is like a lost request
        await getattr(self._world.store, verb)(resource, *args, **more)


@settings(max_examples=15)
@given(steps=STEPS)
@pytest.mark.spec("DA-6.3")
def test_after_any_history_pods_have_their_claims_and_no_others_are_left(
    new_world: Callable[..., Any], steps: list[tuple[Any, ...]]
) -> None:
    _take_all(new_world, steps)


@pytest.mark.long
@settings(max_examples=400)
@given(steps=STEPS)
def test_after_any_of_many_histories_pods_have_their_claims_and_no_others_are_left(
    new_world: Callable[..., Any], steps: list[tuple[Any, ...]]
) -> None:
    _take_all(new_world, steps)


def _take_all(new_world: Callable[..., Any], steps: list[tuple[Any, ...]]) -> None:
    root = Path(tempfile.mkdtemp(prefix="dv"))
    try:
        anyio.run(partial(_walk, new_world, root, steps))
    finally:
        shutil.rmtree(root)


async def _walk(new_world: Callable[..., Any], root: Path, steps: list[tuple[Any, ...]]) -> None:
    async with new_world(root) as world:
        await world.template("t")
        await world.claim("shared")
        losses = Losses(world)
        for part in _parts(steps):
            async with running(world.controller.run):
                for step in part:
                    with suppress(DevletError):
                        await _take(step, world, losses)
            if part and part[-1] == ("restart", True):
                world.controller = world.new_controller()
        losses.requests = losses.answers = 0
        async with running(world.controller.run):
            for _ in range(3):  # retries are due
                await world.settled()
                await world.clock.advance(10)
            await world.settled()
            # `settled` does not wait for the garbage collector
            await until(partial(_wrong, world), lambda wrong: not wrong)


def _parts(steps: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    parts: list[list[tuple[Any, ...]]] = [[]]
    for step in steps:
        parts[-1].append(step)
        if step[0] == "restart":
            parts.append([])
    return parts


async def _take(step: tuple[Any, ...], world: "World", losses: Losses) -> None:
    match step:
        case ("create", name, entries):
            await world.pod(name, **entries)
        case ("create on a node", name, entries):
            await world.pod(name, "n1", **entries)
        case ("schedule", name):
            await _schedule(world, name)
        case ("finish", name):
            await world.finish(name)
        case ("remove", name):
            await world.remove(name)
        case ("ask to end", name):
            await world.store.delete(PODS, name, NS, DeleteOptions(grace_period=30))
        case ("replace", name):
            await world.remove(name)
            await world.pod(name, a="t")
        case ("delete a claim", number):
            if claims := sorted(await world.claims()):
                await world.store.delete(RESOURCE_CLAIMS, claims[number % len(claims)], NS)
        case ("lose requests", number):
            losses.requests = number
        case ("lose answers", number):
            losses.answers = number
        case ("let time pass",):
            await world.clock.advance(5)
        case ("take a breath", turns):
            for _ in range(turns):
                await checkpoint()


async def _schedule(world: "World", name: str) -> None:
    """Allocate and reserve each claim in one write, then bind the pod."""
    pod = await world.store.get(PODS, name, NS)
    recorded = await world.recorded(name)
    for entry in pod["spec"]["resourceClaims"]:
        claim = await world.store.get(RESOURCE_CLAIMS, _claim_of(entry, recorded), NS)
        before = claim["status"].get("reservedFor", [])
        if pod["metadata"]["uid"] not in [consumer["uid"] for consumer in before]:
            await world.allocate(claim["metadata"]["name"], pod, others=before)
    if not pod["spec"].get("nodeName"):
        await world.bind(name)


def _claim_of(entry: Document, recorded: dict[str, str | None]) -> str:
    return entry.get("resourceClaimName") or recorded.get(entry["name"]) or "none-yet"


async def _wrong(world: "World") -> str:
    try:
        await _check(world)
    except (AssertionError, KeyError) as e:
        return repr(e)
    return ""


async def _check(world: "World") -> None:
    pods = {pod["metadata"]["uid"]: pod for pod in (await world.store.list(PODS, NS)).items}
    living = {uid: pod for uid, pod in pods.items() if pod["status"]["phase"] == "Pending"}
    starting = {uid: pod for uid, pod in living.items() if "deletionTimestamp" not in pod["metadata"]}
    claims = await world.claims()
    for pod in starting.values():
        recorded = await world.recorded(pod["metadata"]["name"])
        for entry in pod["spec"]["resourceClaims"]:
            if "resourceClaimTemplateName" in entry:
                claim = claims[recorded[entry["name"]] or ""]
                assert claim["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    for claim in claims.values():
        consumers = [consumer["uid"] for consumer in claim["status"].get("reservedFor", [])]
        assert living.keys() >= set(consumers), "reserved for a pod that is gone"
        assert consumers or "allocation" not in claim["status"], "allocated without consumers"
        for owner in claim["metadata"].get("ownerReferences", []):
            assert owner["uid"] in living, "made for a pod that is gone"
    assert all(number == 1 for number in _entries(claims, starting).values()), "two claims for one entry"


def _entries(claims: dict[str, Document], pods: dict[str, Document]) -> Counter[tuple[str, str]]:
    """Return the entries of these pods with the number of claims for each. A finished pod has none."""
    return Counter(
        (owner["uid"], claim["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"])
        for claim in claims.values()
        for owner in claim["metadata"].get("ownerReferences", [])
        if owner["uid"] in pods
    )
