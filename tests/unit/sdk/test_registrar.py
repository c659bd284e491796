"""Who is there, and what the node says to that."""

from contextlib import suppress
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.errors import Unavailable
from devlet.sdk.registrar import DRA_PLUGIN, Registrar, RegistrationStatus
from devlet.sdk.server import SocketServer
from devlet.wire.pluginregistration import api_pb2 as pb
from tests.unit.sdk.conftest import call

pytestmark = pytest.mark.anyio

VERSIONS = ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


def registrar() -> Registrar:
    return Registrar(DRA_PLUGIN, "led.example.com", "/plugins/dra.sock", VERSIONS)


GET_INFO, NOTIFY = (f"/pluginregistration.Registration/{name}" for name in ("GetInfo", "NotifyRegistrationStatus"))


async def notify(path: Path, *, registered: bool, error: str = "") -> None:
    status = pb.RegistrationStatus(plugin_registered=registered, error=error)
    await call(path, NOTIFY, status.SerializeToString())


@pytest.mark.spec("DN-5.4a")
async def test_it_names_itself_and_is_notified_of_its_registration(root: Path) -> None:
    one = registrar()
    async with SocketServer(root / "s", [one.methods]).serving():
        info = pb.PluginInfo.FromString(await call(root / "s", GET_INFO))
        assert (info.type, info.name, info.endpoint) == ("DRAPlugin", "led.example.com", "/plugins/dra.sock")
        assert list(info.supported_versions) == VERSIONS and one.status is None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.registered)
            await notify(root / "s", registered=True)
        assert one.status == RegistrationStatus(True)


@pytest.mark.spec("DN-5.4b")
async def test_a_refusal_is_kept_and_answered_with_an_error(root: Path) -> None:
    one = registrar()
    async with SocketServer(root / "s", [one.methods]).serving():
        with pytest.raises(grpc.aio.AioRpcError, match="failed registration process: no version in common"):
            await notify(root / "s", registered=False, error="no version in common")
        assert one.status == RegistrationStatus(False, "no version in common")
        with pytest.raises(Unavailable, match=r"led.example.com was not registered: no version in common"):
            await one.registered()
        await notify(root / "s", registered=True)
        await one.registered(2)


async def test_each_acceptance_is_reported_to_the_callback(root: Path) -> None:
    times: list[bool] = []
    one = Registrar(DRA_PLUGIN, "led.example.com", "/plugins/dra.sock", VERSIONS, lambda: times.append(True))
    async with SocketServer(root / "s", [one.methods]).serving():
        for accepted in (True, False, True):
            with suppress(grpc.aio.AioRpcError):
                await notify(root / "s", registered=accepted)
    assert len(times) == 2


async def test_nonsense_is_refused(root: Path) -> None:
    one = registrar()
    async with SocketServer(root / "s", [one.methods]).serving():
        with pytest.raises(grpc.aio.AioRpcError, match="cannot be decoded"):
            await call(root / "s", NOTIFY, b"\xff\xff\xff")
    assert one.status is None
