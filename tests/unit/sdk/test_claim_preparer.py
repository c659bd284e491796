"""Between the node's calls and the author's methods."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any, cast

import anyio
import grpc
import pytest

from devlet.errors import DevletError, NotFound, Unavailable
from devlet.objects.documents import view
from devlet.objects.types.claim import DeviceAllocationConfiguration, DeviceResult, ResourceClaim
from devlet.sdk.cdi_files import CdiFiles
from devlet.sdk.claim_preparer import ClaimPreparer
from devlet.sdk.dra_services import DraService, dra_methods
from devlet.sdk.exclusion import Exclusion
from devlet.sdk.holders import Holders
from devlet.sdk.server import Context, Methods, SocketServer
from devlet.sdk.values import Claim, ClaimRef, Prepared
from devlet.testing.waiting import until
from devlet.wire.dra_v1 import api_pb2 as pb
from tests.unit.sdk.conftest import call

pytestmark = pytest.mark.anyio

DRIVER = "led.example.com"


def ref(name: str) -> ClaimRef:
    return ClaimRef("default", name, f"{name}-0000")


def claim(name: str) -> Claim:
    document = {
        "kind": "DeviceResult",
        "request": "led/bright",
        "driver": DRIVER,
        "pool": "n1",
        "device": name,
        "shareID": "s-1",
    }
    result = view(DeviceResult, document)
    return Claim(ref(name), (result,), (), view(ResourceClaim, {}), {})


class Reader:
    """Knows every claim whose name is not `missing`."""

    async def read(self, refs: Sequence[ClaimRef]) -> dict[str, Claim | DevletError]:
        return {each.uid: NotFound("no such claim") if each.name == "missing" else claim(each.name) for each in refs}


class Author:
    def __init__(self) -> None:
        self.nobody: dict[str, Sequence[Prepared]] = {}
        self.busy = 0
        self.most = 0
        self.unprepared: list[str] = []

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.busy += 1
        self.most = max(self.most, self.busy)
        await anyio.sleep(0.01)
        self.busy -= 1
        if claim.ref.name == "broken":
            raise Unavailable("the lamp is broken")
        if claim.ref.name == "mistake":
            return self.nobody[claim.ref.name]
        if claim.ref.name == "foreign":
            return [Prepared(view(DeviceResult, {"pool": "n1", "device": "x"}))]
        return [Prepared(result, env={"LED": result.device}) for result in claim.results]

    async def unprepare(self, claim: ClaimRef) -> None:
        if claim.name == "broken":
            raise Unavailable("the lamp is broken")
        self.unprepared.append(claim.name)


def preparer(root: Path, author: Author, turns: Any = None) -> ClaimPreparer:
    reader: Any = Reader()
    return ClaimPreparer(author, reader, CdiFiles(root / "cdi", DRIVER), turns)


@pytest.mark.spec("DN-5.1a")
async def test_a_claim_is_answered_with_its_devices_and_its_cdi_file(root: Path) -> None:
    answer = (await preparer(root, Author()).prepare([ref("red")]))["red-0000"]
    assert not isinstance(answer, Exception)
    (device,) = answer
    assert (device.pool, device.device, device.share, device.requests) == ("n1", "red", "s-1", ("led",))
    (name,) = device.cdi_devices or ()
    assert name.startswith("led.example.com/") and "red-0000" in name
    assert len(list((root / "cdi").glob("*.json"))) == 1


@pytest.mark.spec("DN-5.1b")
async def test_what_is_wrong_with_one_does_not_touch_the_others(root: Path) -> None:
    names = ["red", "broken", "mistake", "foreign", "missing", "green"]
    answers = await preparer(root, Author()).prepare([ref(name) for name in names])
    assert [isinstance(answers[f"{name}-0000"], Exception) for name in names] == [False, True, True, True, True, False]
    assert str(answers["broken-0000"]) == "the lamp is broken"
    assert str(answers["mistake-0000"]) == "KeyError: 'mistake'"
    assert "n1/x is not a result of claim default/foreign" in str(answers["foreign-0000"])


class Mistaken(Author):
    """With the claims that are named so."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        match claim.ref.name:
            case "cancelled":
                raise asyncio.CancelledError
            case "group":
                raise ExceptionGroup("unhandled errors in a TaskGroup", [OSError("the lamp is gone")])
            case "nothing":
                return cast(Sequence[Prepared], None)
            case "text":
                return cast(Sequence[Prepared], ["red"])
            case "exit":
                raise SystemExit("no lamp")
        return await super().prepare(claim)

    async def unprepare(self, claim: ClaimRef) -> None:
        raise asyncio.CancelledError


@pytest.mark.parametrize("in_turns", [True, False])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cancelled", r"prepare\(\) was cancelled from within"),
        ("group", "^OSError: the lamp is gone$"),
        ("nothing", r"prepare\(\) gave None, expected a list of Prepared"),
        ("text", r"prepare\(\) gave 'red', expected a Prepared"),
        ("exit", r"prepare\(\) called sys.exit: raise an error instead: SystemExit: no lamp"),
    ],
)
async def test_an_authors_mistake_is_the_claims_answer_and_says_what_is_wrong(
    root: Path, name: str, text: str, in_turns: bool
) -> None:
    one = preparer(root, Mistaken(), Exclusion() if in_turns else None)
    answers = await one.prepare([ref(name), ref("red")])
    assert re.search(text, str(answers[f"{name}-0000"])) and isinstance(answers["red-0000"], list)


async def test_an_unprepare_that_cancels_itself_is_an_error_of_each_claim(root: Path) -> None:
    answers = await preparer(root, Mistaken(), Exclusion()).unprepare([ref("red"), ref("green")])
    assert ["unprepare() was cancelled from within" in str(each) for each in answers.values()] == [True, True]


class NotAsync(Author):
    def prepare(self, claim: Claim) -> Any:
        return [Prepared(result) for result in claim.results]

    def unprepare(self, claim: ClaimRef) -> Any:
        return None


async def test_a_method_without_async_is_named(root: Path) -> None:
    one = preparer(root, NotAsync())
    answers = await one.prepare([ref("red")]) | await one.unprepare([ref("green")])
    expected = "expected `async def` and `return`"
    assert f"NotAsync.prepare() gave a list, {expected}" in str(answers["red-0000"])
    assert f"NotAsync.unprepare() gave a NoneType, {expected}" in str(answers["green-0000"])


class Forgetful(Author):
    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        return []


async def test_results_that_are_left_out_are_named_in_a_warning(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Drivers may do so: with some devices there is nothing to get."""
    assert await preparer(root, Forgetful()).prepare([ref("red")]) == {"red-0000": []}
    [warning] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "left out" in warning.getMessage() and warning.__dict__["facts"]["results"] == "n1/red"


async def test_a_claim_can_be_unprepared_whatever_lies_where_its_files_should_be(root: Path) -> None:
    (root / "cdi").touch()
    (root / "held").touch()
    reader: Any = Reader()
    one = ClaimPreparer(Author(), reader, CdiFiles(root / "cdi", DRIVER), holders=Holders(root / "held"))
    assert isinstance((await one.prepare([ref("red")]))["red-0000"], Unavailable)
    assert (await one.unprepare([ref("red")]))["red-0000"] is None


@pytest.mark.spec("DN-5.1c")
async def test_repeating_gives_the_same_answer(root: Path) -> None:
    one = preparer(root, Author())
    assert await one.prepare([ref("red")]) == await one.prepare([ref("red")])


async def test_unprepare_calls_the_author_and_removes_the_file(root: Path) -> None:
    author = Author()
    one = preparer(root, author)
    await one.prepare([ref("red"), ref("broken")])
    answers = await one.unprepare([ref("red"), ref("broken"), ref("never-seen")])
    assert answers["red-0000"] is None and answers["never-seen-0000"] is None
    assert str(answers["broken-0000"]) == "the lamp is broken"
    assert author.unprepared == ["red", "never-seen"] and not list((root / "cdi").glob("*.json"))


@pytest.mark.spec("DN-5.6a")
@pytest.mark.parametrize("in_turns", [True, False])
async def test_claims_take_turns_unless_the_author_wants_otherwise(root: Path, in_turns: bool) -> None:
    author = Author()
    one = preparer(root, author, Exclusion() if in_turns else None)
    async with anyio.create_task_group() as tasks:
        for name in ("red", "green", "blue"):
            tasks.start_soon(one.prepare, [ref(name), ref(f"{name}-2")])
    assert (author.most == 1) is in_turns


class Threaded(Author):
    """Does its work in a thread, which nobody can cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = Event()
        self.is_at_work = False
        self.was_alone: bool | None = None

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.is_at_work = True
        await anyio.to_thread.run_sync(self._work)
        return []

    def _work(self) -> None:
        self.goes_on.wait(60)
        self.is_at_work = False

    async def unprepare(self, claim: ClaimRef) -> None:
        self.was_alone = not self.is_at_work


async def pong(blob: bytes, context: Context) -> bytes:
    return b""


@pytest.mark.spec("DN-5.6e")
async def test_a_node_that_gave_up_waiting_has_its_turn_until_the_authors_thread_is_done(root: Path) -> None:
    author, path, prefix = Threaded(), root / "s", "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
    one = preparer(root, author, Exclusion())
    request = pb.NodePrepareResourcesRequest(claims=[pb.Claim(namespace="default", name="red", uid="red-0000")])
    methods = [dra_methods(DraService.V1, one.prepare, one.unprepare), Methods({"/ping": pong})]

    async def is_at_work() -> bool:
        return author.is_at_work

    async with SocketServer(path, methods).serving(), grpc.aio.insecure_channel(f"unix:{path}") as channel:
        ask: Any = channel.unary_unary(f"{prefix}/NodePrepareResources")
        asked = ask(request.SerializeToString())
        await until(is_at_work)
        asked.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, path, f"{prefix}/NodeUnprepareResources", request.SerializeToString())
            for _ in range(20):  # some time passes, in which it could have had its turn
                await call(path, "/ping")
            assert author.was_alone is None
            author.goes_on.set()
    assert author.was_alone is True


class TwoOfOneDevice:
    """Two claims with one device, and parameters for it."""

    async def read(self, refs: Sequence[ClaimRef]) -> dict[str, Claim | DevletError]:
        document = {"request": "led", "driver": DRIVER, "pool": "n1", "device": "red"}
        opaque = {"driver": DRIVER, "parameters": {"color": "red"}}
        configs = (view(DeviceAllocationConfiguration, {"opaque": opaque}),)
        result = view(DeviceResult, document)
        return {each.uid: Claim(each, (result,), configs, view(ResourceClaim, {}), {}) for each in refs}


async def test_a_device_is_refused_to_a_second_claim_until_the_first_is_unprepared(root: Path) -> None:
    reader: Any = TwoOfOneDevice()
    one = ClaimPreparer(Author(), reader, CdiFiles(root / "cdi", DRIVER), Exclusion(), holders=Holders(root / "held"))
    first = await one.prepare([ref("first")])
    answers = await one.prepare([ref("second"), ref("first")])
    assert "n1/red is prepared for claim default/first" in str(answers["second-0000"])
    assert answers["first-0000"] == first["first-0000"]
    await one.unprepare([ref("first")])
    assert not isinstance((await one.prepare([ref("second")]))["second-0000"], Exception)


async def test_parameters_that_are_not_taken_are_refused_before_the_author_is_asked(root: Path) -> None:
    reader: Any = TwoOfOneDevice()
    author, holders = Author(), Holders(root / "held")
    one = ClaimPreparer(author, reader, CdiFiles(root / "cdi", DRIVER), holders=holders, parameters=None)
    answers = await one.prepare([ref("first")])
    assert "request led has parameters" in str(answers["first-0000"])
    assert author.most == 0 and not holders.directory.exists()
