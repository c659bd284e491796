"""Claims and answers on the wire, in both versions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from devlet.errors import InvalidInput
from devlet.objects.types.claim import PreparedDevice
from devlet.sdk.dra_services import DraService, PrepareAnswer, UnprepareAnswer, dra_methods
from devlet.sdk.server import SocketServer
from devlet.sdk.values import ClaimRef
from devlet.wire.dra_v1 import api_pb2 as pb_v1
from devlet.wire.dra_v1beta1 import api_pb2 as pb_v1beta1
from tests.unit.sdk.conftest import call

pytestmark = pytest.mark.anyio

MESSAGES: dict[DraService, Any] = {DraService.V1: pb_v1, DraService.V1BETA1: pb_v1beta1}
BOTH = pytest.mark.parametrize("service", DraService)
ONE = PreparedDevice("pool", "red", share="s-1", requests=("led/bright",), cdi_devices=("vendor.com/led=red",))


class Author:
    def __init__(self) -> None:
        self.asked: list[ClaimRef] = []

    async def prepare(self, refs: Sequence[ClaimRef]) -> PrepareAnswer:
        self.asked += refs
        return {ref.uid: [ONE] if ref.name == "good" else InvalidInput(f"{ref.name} is broken") for ref in refs}

    async def unprepare(self, refs: Sequence[ClaimRef]) -> UnprepareAnswer:
        self.asked += refs
        return {ref.uid: None if ref.name == "good" else KeyError() for ref in refs}


async def ask(root: Path, service: DraService, method: str, claims: Sequence[ClaimRef], author: Author) -> Any:
    pb = MESSAGES[service]
    request = getattr(pb, f"Node{method}ResourcesRequest")(
        claims=[pb.Claim(namespace=each.namespace, name=each.name, uid=each.uid) for each in claims]
    )
    path = f"/k8s.io.kubelet.pkg.apis.dra.{service}/Node{method}Resources"
    methods = dra_methods(service, author.prepare, author.unprepare)
    async with SocketServer(root / "s", [methods]).serving():
        answer = await call(root / "s", path, request.SerializeToString())
    return getattr(pb, f"Node{method}ResourcesResponse").FromString(answer)


GOOD, BAD = ClaimRef("default", "good", "u-1"), ClaimRef("default", "bad", "u-2")


@pytest.mark.spec("DN-5.5a")
@BOTH
async def test_each_claim_has_its_devices_or_its_error(root: Path, service: DraService) -> None:
    author = Author()
    answer = await ask(root, service, "Prepare", [GOOD, BAD], author)
    assert author.asked == [GOOD, BAD]
    (device,) = answer.claims["u-1"].devices
    assert (device.pool_name, device.device_name) == ("pool", "red")
    assert list(device.request_names) == ["led"] and list(device.cdi_device_ids) == ["vendor.com/led=red"]
    assert answer.claims["u-2"].error == "bad is broken" and not answer.claims["u-2"].devices


@pytest.mark.spec("DN-5.5b")
async def test_only_v1_has_shares(root: Path) -> None:
    assert (await ask(root, DraService.V1, "Prepare", [GOOD], Author())).claims["u-1"].devices[0].share_id == "s-1"
    old = await ask(root, DraService.V1BETA1, "Prepare", [GOOD], Author())
    assert not hasattr(old.claims["u-1"].devices[0], "share_id")


@BOTH
async def test_unprepare_answers_for_each_and_no_error_is_empty(root: Path, service: DraService) -> None:
    answer = await ask(root, service, "Unprepare", [GOOD, BAD], Author())
    assert {uid: one.error for uid, one in answer.claims.items()} == {"u-1": "", "u-2": "KeyError"}


@BOTH
async def test_an_error_that_is_not_utf_8_does_not_affect_other_answers(root: Path, service: DraService) -> None:
    strange = ClaimRef("default", "strange", "u-3")

    class Strange(Author):
        async def prepare(self, refs: Sequence[ClaimRef]) -> PrepareAnswer:
            return {**await super().prepare([GOOD]), strange.uid: ValueError("no file bad\udcff")}

        async def unprepare(self, refs: Sequence[ClaimRef]) -> UnprepareAnswer:
            return {GOOD.uid: None, strange.uid: ValueError("no file bad\udcff")}

    for method in ("Prepare", "Unprepare"):
        answer = await ask(root, service, method, [GOOD, strange], Strange())
        assert {uid: one.error for uid, one in answer.claims.items()} == {"u-1": "", "u-3": "no file bad?"}


@pytest.mark.spec("DN-11.03")
async def test_a_claim_that_is_named_twice_is_asked_for_once(root: Path) -> None:
    author = Author()
    await ask(root, DraService.V1, "Prepare", [GOOD, GOOD], author)
    assert author.asked == [GOOD]


async def test_a_claim_without_a_uid_is_refused(root: Path) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="needs namespace, name and UID"):
        await ask(root, DraService.V1, "Prepare", [ClaimRef("default", "good", "")], Author())
