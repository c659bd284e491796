from pathlib import Path

import pytest

from devlet.errors import InvalidInput, PluginRefused, PluginUnavailable
from devlet.plugins.registration_client import PluginInfo, Settings, connected_client
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.wire.pluginregistration import api_pb2 as pb

QUICK = Settings(dial=0.2, get_info=0.1, notify=0.1)
SOCKET = Path("/registry/a.sock")


def plugin(directory: Path) -> FakeDevicePlugin:
    return FakeDevicePlugin(directory, "vendor.com/gpu", registry=directory, socket="gpu.sock")


@pytest.mark.anyio
async def test_the_info_of_a_plugin_is_returned(root: Path) -> None:
    async with plugin(root) as fake, connected_client(fake.path) as client:
        fake.type, fake.endpoint, fake.versions = "DRAPlugin", "/run/x.sock", ["v1", "v1beta1"]
        assert await client.info() == PluginInfo("DRAPlugin", "vendor.com/gpu", "/run/x.sock", ("v1", "v1beta1"))


@pytest.mark.anyio
async def test_a_plugin_is_notified_of_the_result(root: Path) -> None:
    async with plugin(root) as fake, connected_client(fake.path) as client:
        await client.refuse("no such type")
        await client.accept()
        assert fake.statuses == [(False, "no such type"), (True, "")]


@pytest.mark.anyio
async def test_an_error_to_a_plugin_is_limited(root: Path) -> None:
    async with plugin(root) as fake, connected_client(fake.path) as client:
        await client.refuse("ü" * 1_000_000)
        assert fake.statuses == [(False, "ü" * 4096)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"\xff\xff", "cannot be decoded"),
        (pb.PluginInfo(name="x" * 1025).SerializeToString(), "more than"),
        (pb.PluginInfo(supported_versions=["v"] * 65).SerializeToString(), "more than"),
        (pb.PluginInfo(name="x" * 100_000).SerializeToString(), "GetInfo failed"),
    ],
    ids=["garbage", "long name", "many versions", "large message"],
)
async def test_an_invalid_answer_is_refused(root: Path, answer: bytes, problem: str) -> None:
    async with plugin(root) as fake, connected_client(fake.path) as client:
        fake.answer("GetInfo", answer)
        with pytest.raises(PluginRefused, match=problem):
            await client.info()


@pytest.mark.anyio
async def test_every_call_has_a_deadline(root: Path) -> None:
    async with plugin(root) as fake, connected_client(fake.path, QUICK) as client:
        fake.hang("GetInfo")
        fake.hang("NotifyRegistrationStatus")
        with pytest.raises(PluginUnavailable, match=r"GetInfo was not answered within 0\.1 s"):
            await client.info()
        with pytest.raises(PluginUnavailable, match="NotifyRegistrationStatus"):
            await client.accept()


@pytest.mark.anyio
async def test_a_socket_without_listener_is_unavailable_and_named(root: Path) -> None:
    async with plugin(root) as fake:
        await fake.crash()
        with pytest.raises(PluginUnavailable, match=r"gpu\.sock: no listener"):
            async with connected_client(fake.path, QUICK):
                pass


def test_the_deadlines_are_those_of_the_kubelet() -> None:
    assert Settings() == Settings(dial=10, get_info=1, notify=5)


def test_an_empty_endpoint_is_the_socket_itself() -> None:
    assert PluginInfo("T", "n").served_on(SOCKET) == SOCKET
    assert PluginInfo("T", "n", "/run/n.sock").served_on(SOCKET) == Path("/run/n.sock")


@pytest.mark.parametrize("endpoint", ["n.sock", "./n.sock", "/n\0.sock", "unix:///n.sock", "/" + "x" * 107])
def test_an_impossible_endpoint_is_invalid(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="endpoint"):
        PluginInfo("T", "n", endpoint).served_on(SOCKET)


def test_an_endpoint_may_be_as_long_as_a_socket_path() -> None:
    longest = "/" + "x" * 106
    assert PluginInfo("T", "n", longest).served_on(SOCKET) == Path(longest)
    with pytest.raises(InvalidInput, match="107 bytes"):
        PluginInfo("T", "n", "/" + "ü" * 54).served_on(SOCKET)
