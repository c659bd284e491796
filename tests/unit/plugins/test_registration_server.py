import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.errors import DevletError, InUse, InvalidInput, PluginRefused, PluginUnavailable, Unavailable
from devlet.kit.parts import running
from devlet.objects.identifiers import ResourceName
from devlet.plugins.channels import target
from devlet.plugins.device_plugin import Api, Offer
from devlet.plugins.registration_server import RegistrationServer, Settings, remove_sockets
from devlet.testing.fake_device_plugin import FakeDevicePlugin

pytestmark = pytest.mark.anyio

AUTHORITY = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]


class Manager:
    """Accepts every registration, or raises `problem`."""

    def __init__(self, problem: DevletError | None = None) -> None:
        self.offers: list[Offer] = []
        self.counted: list[str] = []
        self.problem = problem

    async def register(self, offer: Offer) -> None:
        self.offers.append(offer)
        if self.problem:
            raise self.problem


@asynccontextmanager
async def serving(directory: Path, manager: Manager) -> AsyncIterator[RegistrationServer]:
    server = RegistrationServer(directory, manager.register, count=manager.counted.append)
    async with running(server.run):
        yield server


async def refusal(plugin: FakeDevicePlugin, **request: str) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await plugin.register(**request)  # type: ignore[arg-type]
    return refused.value.code(), refused.value.details() or ""


async def test_a_registration_hands_over_resource_and_socket(root: Path) -> None:
    manager = Manager()
    async with serving(root, manager), FakeDevicePlugin(root, "vendor.com/gpu", socket="gpu.sock") as plugin:
        await plugin.register()
    assert manager.offers == [Offer(ResourceName("vendor.com/gpu"), root / "gpu.sock", Api.V1BETA1)]


@pytest.mark.parametrize("api", [Api.V1ALPHA2, Api.V1ALPHA1])
async def test_plugins_of_the_old_apis_register_with_the_old_service_name(root: Path, api: Api) -> None:
    manager = Manager()
    async with serving(root, manager), FakeDevicePlugin(root, api=api) as plugin:
        await plugin.register()
    assert [offer.api for offer in manager.offers] == [api]


async def test_every_request_is_counted_before_it_is_checked(root: Path) -> None:
    manager = Manager()
    async with serving(root, manager), FakeDevicePlugin(root) as plugin:
        await plugin.register()
        await refusal(plugin, version="v2")
        await refusal(plugin, resource="cpu")
    assert manager.counted == ["vendor.com/gpu", "vendor.com/gpu", "cpu"]
    assert len(manager.offers) == 1


@pytest.mark.spec("DP-9.16")
async def test_an_unsupported_version_is_a_failed_precondition(root: Path) -> None:
    async with serving(root, Manager()), FakeDevicePlugin(root) as plugin:
        assert await refusal(plugin, version='v1"x') == (
            grpc.StatusCode.FAILED_PRECONDITION,
            'requested API version "v1\\"x" is not supported by kubelet. Supported version is ["v1beta1"]',
        )
        assert (await refusal(plugin, version="v1alpha2"))[0] is grpc.StatusCode.FAILED_PRECONDITION
    async with serving(root, Manager()), FakeDevicePlugin(root, api=Api.V1ALPHA2) as plugin:
        text = 'requested API version "v1beta1" is not supported by kubelet. Supported version is ["v1alpha2" "0.1"]'
        assert await refusal(plugin, version="v1beta1") == (grpc.StatusCode.FAILED_PRECONDITION, text)


@pytest.mark.spec("DP-9.16")
async def test_a_name_that_is_not_an_extended_resource_is_an_invalid_argument(root: Path) -> None:
    async with serving(root, Manager()), FakeDevicePlugin(root) as plugin:
        text = 'the ResourceName "kubernetes.io/gpu" is invalid'
        assert await refusal(plugin, resource="kubernetes.io/gpu") == (grpc.StatusCode.INVALID_ARGUMENT, text)


@pytest.mark.spec("DP-9.16")
@pytest.mark.parametrize(
    "endpoint", ["", ".", "..", "/run/x.sock", "a/b", "../x.sock", "a\0b", "kubelet.sock", "x" * 107]
)
async def test_an_endpoint_that_is_not_the_name_of_a_socket_is_an_invalid_argument(root: Path, endpoint: str) -> None:
    manager = Manager()
    async with serving(root, manager), FakeDevicePlugin(root) as plugin:
        code, text = await refusal(plugin, endpoint=endpoint)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text.startswith("the endpoint ")
    assert manager.offers == []


async def test_a_request_that_cannot_be_decoded_is_an_invalid_argument(root: Path) -> None:
    async with serving(root, Manager()) as server:
        async with grpc.aio.insecure_channel(target(server.path), options=AUTHORITY) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/v1beta1.Registration/Register")
            with pytest.raises(grpc.aio.AioRpcError, match="the request cannot be decoded") as refused:
                await call(b"\x0a\x01\xff")
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(b"x" * 100_000)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.spec("DP-9.16")
@pytest.mark.parametrize(
    ("problem", "code", "text"),
    [
        (PluginUnavailable("p", "failed to dial device plugin: x"), "UNAVAILABLE", "failed to dial device plugin: x"),
        (PluginRefused("p", "failed to get device plugin options: x"), "FAILED_PRECONDITION", None),
        (Unavailable("the disk is full"), "UNAVAILABLE", "the disk is full"),
        (InvalidInput("not so"), "INVALID_ARGUMENT", "not so"),
    ],
)
async def test_the_plugin_gets_the_reason_why_it_was_not_connected(
    root: Path, problem: DevletError, code: str, text: str | None
) -> None:
    async with serving(root, Manager(problem)), FakeDevicePlugin(root) as plugin:
        expected = text or "failed to get device plugin options: x"
        assert await refusal(plugin) == (grpc.StatusCode[code], expected)


async def test_a_very_long_error_still_arrives(root: Path) -> None:
    async with serving(root, Manager(Unavailable("ä" * 100_000))), FakeDevicePlugin(root) as plugin:
        code, text = await refusal(plugin)
    assert (code, text[:3]) == (grpc.StatusCode.UNAVAILABLE, "äää")


async def test_the_directory_is_created_and_the_socket_belongs_to_its_owner(root: Path) -> None:
    directory = root / "a" / "device-plugins"
    async with serving(directory, Manager()) as server:
        assert stat.S_IMODE(directory.stat().st_mode) == 0o750
        assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
    assert list(directory.iterdir()) == []


@pytest.mark.spec("DP-8.01")
async def test_the_service_starts_and_stops_again_and_again_on_the_same_path(root: Path) -> None:
    manager = Manager()
    server = RegistrationServer(root, manager.register)
    for _ in range(3):
        async with running(server.run), FakeDevicePlugin(root) as plugin:
            await plugin.register()
    assert len(manager.offers) == 3


async def test_the_socket_of_a_killed_server_is_replaced(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(root / "kubelet.sock"))
    async with serving(root, Manager()), FakeDevicePlugin(root) as plugin:
        await plugin.register()


async def test_stopping_does_not_wait_for_requests_or_clients(root: Path) -> None:
    asked = anyio.Event()

    async def hang(offer: Offer) -> None:
        asked.set()
        await anyio.sleep_forever()

    async def register(plugin: FakeDevicePlugin) -> None:
        with pytest.raises(grpc.aio.AioRpcError):
            await plugin.register(timeout=60)

    async with FakeDevicePlugin(root) as plugin, anyio.create_task_group() as tasks:
        async with running(RegistrationServer(root, hang).run):
            async with await anyio.connect_unix(root / "kubelet.sock"):
                tasks.start_soon(register, plugin)
                await asked.wait()
                tasks.cancel_scope.deadline = anyio.current_time() + 5
    assert not tasks.cancel_scope.cancelled_caught


async def test_too_many_concurrent_requests_are_rejected(root: Path) -> None:
    asked, done = anyio.Event(), anyio.Event()

    async def hang(offer: Offer) -> None:
        asked.set()
        await done.wait()

    server = RegistrationServer(root, hang, settings=Settings(max_requests=1))
    async with FakeDevicePlugin(root) as plugin, running(server.run), anyio.create_task_group() as tasks:
        tasks.start_soon(plugin.register)
        await asked.wait()
        assert (await refusal(plugin))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        done.set()
    assert plugin.registrations == 1


@pytest.mark.spec("DP-8.01")
async def test_the_directory_must_be_absolute_and_short_enough_for_a_socket() -> None:
    with pytest.raises(InvalidInput, match=r"^bad socketPath, must be an absolute path: x/kubelet\.sock$"):
        RegistrationServer(Path("x"), Manager().register)
    with pytest.raises(InvalidInput, match="a socket path has at most 107 bytes"):
        RegistrationServer(Path("/" + "x" * 100), Manager().register)


async def test_a_path_that_cannot_be_listened_on_is_an_error_at_the_start(root: Path) -> None:
    (root / "file").touch()
    (root / "d" / "kubelet.sock").mkdir(parents=True)
    for directory in (root / "file", root / "d"):
        server = RegistrationServer(directory, Manager().register)
        with pytest.raises(Unavailable, match=rf"cannot listen on {directory}/kubelet\.sock"):
            await server.run()


async def test_a_directory_that_another_process_serves_is_not_touched(root: Path) -> None:
    async with serving(root, Manager()), FakeDevicePlugin(root) as plugin:
        with pytest.raises(InUse, match=rf"kubelet\.sock is served by process {os.getpid()}: stop it first"):
            await RegistrationServer(root, Manager().register).run()
        with pytest.raises(InUse):
            remove_sockets(root)
        await plugin.register()


async def test_a_socket_that_was_removed_or_replaced_shows_in_the_health(root: Path) -> None:
    server = RegistrationServer(root, Manager().register)
    assert server.health() is None
    async with running(server.run):
        assert server.health() is None
        server.path.unlink()
        assert server.health() == f"device registration error: {server.path} was removed; plugins cannot register"
        server.path.touch()
        assert "is a file that devlet did not create: move it away" in (server.health() or "")
    assert server.health() is None


async def test_a_registration_under_way_is_answered_even_if_the_socket_is_replaced(root: Path) -> None:
    asked, done = anyio.Event(), anyio.Event()

    async def slow(offer: Offer) -> None:
        asked.set()
        await done.wait()

    server = RegistrationServer(root, slow)
    async with FakeDevicePlugin(root) as plugin, running(server.run), anyio.create_task_group() as tasks:
        tasks.start_soon(plugin.register)
        await asked.wait()
        server.path.unlink()
        assert await server.socket.restore() == "removed socket is served again"
        done.set()
    assert plugin.registrations == 1


def test_only_old_sockets_are_removed(root: Path) -> None:
    names = ["kubelet.sock", "gpu.sock", ".hidden.sock", "kubelet_internal_checkpoint"]
    for name in names:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(root / name))
    (root / "elsewhere").mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(root / "elsewhere" / "x.sock"))
    (root / "link.sock").symlink_to("elsewhere/x.sock")
    (root / "dangling.sock").symlink_to("nowhere")
    (root / "file.sock").touch()
    assert remove_sockets(root, ["kubelet_internal_checkpoint"]) == 4
    assert sorted(path.name for path in root.iterdir()) == [
        "dangling.sock",
        "elsewhere",
        "file.sock",
        "kubelet_internal_checkpoint",
    ]
    assert (root / "elsewhere" / "x.sock").is_socket()


def test_a_missing_directory_has_nothing_to_remove(root: Path) -> None:
    assert remove_sockets(root / "none") == 0


def test_a_socket_that_cannot_be_removed_is_an_error_but_the_others_are_removed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.sock", "b.sock"):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(root / name))
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "a.sock":
            raise PermissionError(1, "Operation not permitted")
        unlink(path, missing_ok)

    # Root may delete anything, so that a real refusal cannot be arranged everywhere.
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(Unavailable, match=rf"cannot remove old sockets: {root}/a\.sock: Operation not permitted"):
        remove_sockets(root)
    assert [path.name for path in root.iterdir()] == ["a.sock"]
