import os
import socket
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import grpc
import pytest
from anyio import create_task_group

from devlet.errors import PluginError, PluginRefused, PluginUnavailable, PluginUnimplemented
from devlet.plugins import channels
from devlet.plugins.channels import Connection, connection, dial_options, listener_pid, target
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio

SERVICE = "/v1beta1.DevicePlugin"
OPTIONS = f"{SERVICE}/GetDevicePluginOptions"


async def problem(path: Path, *, within: float = 600.0) -> str:
    """Return the error of dialling, which must come at once unless `within` is short."""
    with deadline(), pytest.raises(PluginUnavailable) as failed:
        async with connection("p", path, within=within, max_message=1 << 20):
            pass
    return failed.value.message


@contextmanager
def bound(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        yield listener


async def test_the_process_that_listens_is_known(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin:
        assert listener_pid(plugin.path) == os.getpid()
        async with connection("p", plugin.path, within=60, max_message=1 << 20) as connected:
            assert connected.pid == os.getpid()


async def test_something_that_is_not_a_socket_is_refused_at_once(root: Path) -> None:
    (root / "file").touch()
    (root / "dir").mkdir()
    (root / "link").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    assert await problem(root / "file") == f"{root}/file: is a file, not a socket"
    assert await problem(root / "dir") == f"{root}/dir: is a directory, not a socket"
    assert await problem(root / "pipe") == f"{root}/pipe: is a pipe, not a socket"
    assert await problem(root / "link") == f"{root}/link: is a link to nowhere, which does not exist"
    assert await problem(Path("/dev/null")) == "/dev/null: is a device, not a socket"
    assert await problem(root / "file" / "x") == f"{root}/file/x: Not a directory"
    assert "a path cannot contain zero bytes" in await problem(root / "a\0b")


async def test_a_path_that_no_socket_can_have_is_refused_at_once(root: Path) -> None:
    path = root / ("x" * 120)
    size = len(str(path))
    assert await problem(path) == f"{path}: {size} bytes are too many, a socket path has at most 107 bytes"


async def test_a_link_to_a_socket_is_followed(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin:
        (root / "link").symlink_to(plugin.path)
        async with connection("p", root / "link", within=60, max_message=1 << 20) as connected:
            assert await connected.call(OPTIONS, b"", timeout=60) == b""


async def test_a_socket_outside_of_the_directory_is_not_called_even_through_a_link(root: Path) -> None:
    (root / "in").mkdir()
    async with FakeDevicePlugin(root) as plugin:
        (root / "in" / "link").symlink_to(plugin.path)
        for path in (plugin.path, root / "in" / "link", root / "in" / ".." / plugin.path.name):
            with pytest.raises(PluginUnavailable, match="outside of devlet's root"):
                async with connection("p", path, within=60, max_message=1 << 20, below=root / "in"):
                    pass
        assert plugin.calls == []
        async with connection("p", root / "in" / "link", within=60, max_message=1 << 20, below=root) as connected:
            assert await connected.call(OPTIONS, b"", timeout=60) == b""


async def test_a_socket_without_listener_and_a_missing_one_end_with_the_deadline(root: Path) -> None:
    with bound(root / "dead"):
        text = await problem(root / "dead", within=0.1)
    assert text == f"{root}/dead: no listener within 0.1 s (Connection refused)"
    assert await problem(root / "none", within=0.1) == (
        f"{root}/none: no listener within 0.1 s (No such file or directory)"
    )


async def test_a_server_that_does_not_speak_grpc_ends_with_the_deadline(root: Path) -> None:
    with bound(root / "mute") as listener:
        listener.listen()
        text = await problem(root / "mute", within=0.3)
    assert text == f"{root}/mute: something listens, but did not speak gRPC within 0.3 s"


async def test_a_socket_that_is_bound_but_not_listening_yet_is_retried(root: Path) -> None:
    path = root / "vendor_com_gpu.sock"
    tried = anyio.Event()
    connected = anyio.Event()

    async def dial() -> None:
        tried.set()
        async with connection("p", path, within=60, max_message=1 << 20):
            connected.set()

    with bound(path):
        async with create_task_group() as tasks:
            tasks.start_soon(dial)
            await tried.wait()
            async with FakeDevicePlugin(root):
                with deadline():
                    await connected.wait()


async def test_special_characters_in_a_path_are_dialled_literally(root: Path) -> None:
    for name in ("a%41.sock", "..%2fx.sock", "a b#c?d.sock", "ä:1.sock"):
        async with FakeDevicePlugin(root, socket=name) as plugin:
            assert os.listdir(root) == [name]
            async with connection("p", plugin.path, within=60, max_message=1 << 20) as connected:
                assert await connected.call(OPTIONS, b"", timeout=60) == b""


async def test_the_target_of_a_path_is_quoted() -> None:
    assert target(Path("/a b/%2f")) == "unix:/a%20b/%252f"


@pytest.mark.spec("DP-9.04")
async def test_a_call_that_is_not_answered_ends_with_its_deadline(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, connection("p", plugin.path, within=60, max_message=1 << 20) as on:
        plugin.hang("Allocate")
        with pytest.raises(PluginUnavailable, match=r"^plugin p: Allocate was not answered within 0\.05 s$"):
            await on.call(f"{SERVICE}/Allocate", b"", timeout=0.05)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("INTERNAL", PluginRefused),
        ("UNKNOWN", PluginRefused),
        ("UNIMPLEMENTED", PluginUnimplemented),
        ("RESOURCE_EXHAUSTED", PluginRefused),
        ("UNAVAILABLE", PluginUnavailable),
        ("CANCELLED", PluginUnavailable),
    ],
)
async def test_a_status_is_the_plugins_own_unless_its_process_caused_it(
    root: Path, code: str, kind: type[PluginError]
) -> None:
    async with FakeDevicePlugin(root) as plugin, connection("p", plugin.path, within=60, max_message=1 << 20) as on:
        plugin.fail("Allocate", code, "no more")
        with pytest.raises(PluginError) as failed:
            await on.call(f"{SERVICE}/Allocate", b"", timeout=60)
    assert type(failed.value) is kind
    assert failed.value.message == "Allocate failed: no more"


async def test_an_error_without_details_shows_its_status_and_long_details_are_cut(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, connection("p", plugin.path, within=60, max_message=1 << 20) as on:
        plugin.fail("Allocate", "ABORTED", "")
        with pytest.raises(PluginRefused, match="Allocate failed: ABORTED"):
            await on.call(f"{SERVICE}/Allocate", b"", timeout=60)
        plugin.fail("Allocate", "ABORTED", "x" * 5_000)
        with pytest.raises(PluginRefused) as failed:
            await on.call(f"{SERVICE}/Allocate", b"", timeout=60)
        assert 2_000 < len(failed.value.message) < 2_100


@pytest.mark.spec("DP-9.31")
async def test_a_message_over_the_limit_is_refused_with_both_numbers(root: Path) -> None:
    async with FakeDevicePlugin(root, devices=1_000) as plugin:
        async with connection("p", plugin.path, within=60, max_message=4_096) as on:
            with pytest.raises(PluginRefused, match=r"ListAndWatch failed: .*larger than max \(\d+ vs\. 4096\)"):
                async with aclosing(on.stream(f"{SERVICE}/ListAndWatch", b"")) as messages:
                    await anext(messages)


@pytest.mark.spec("DP-8.09")
async def test_calls_on_a_closed_connection_fail_at_once(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin:
        async with connection("p", plugin.path, within=60, max_message=1 << 20) as on:
            pass
        with pytest.raises(PluginUnavailable, match=r"endpoint .*vendor_com_gpu.sock has been stopped"):
            await on.call(f"{SERVICE}/Allocate", b"", timeout=60)
        with pytest.raises(PluginUnavailable, match="has been stopped"):
            await anext(on.stream(f"{SERVICE}/ListAndWatch", b""))
        assert plugin.calls == []


async def test_a_call_under_way_when_the_connection_is_closed_fails_and_is_not_cancelled(root: Path) -> None:
    problems: list[str] = []

    async def wait(on: Connection, stream: bool) -> None:
        try:
            if stream:
                async for _ in on.stream(f"{SERVICE}/ListAndWatch", b""):
                    pass
            else:
                await on.call(f"{SERVICE}/Allocate", b"", timeout=60)
        except PluginUnavailable as e:
            problems.append(e.message)

    async with FakeDevicePlugin(root) as plugin, create_task_group() as tasks:
        plugin.hang("Allocate")
        async with connection("p", plugin.path, within=60, max_message=1 << 20) as on:
            tasks.start_soon(wait, on, True)
            tasks.start_soon(wait, on, False)
            await plugin.until_asked("Allocate")
            await plugin.until_streams(1)
    assert problems == [f"endpoint {plugin.path} has been stopped"] * 2


async def test_a_cancelled_caller_cancels_its_call(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, connection("p", plugin.path, within=60, max_message=1 << 20) as on:
        plugin.hang("Allocate")
        async with create_task_group() as tasks:
            tasks.start_soon(lambda: on.call(f"{SERVICE}/Allocate", b"", timeout=60))
            await plugin.until_asked("Allocate")
            tasks.cancel_scope.cancel()
        plugin.recover("Allocate")
        assert await on.call(OPTIONS, b"", timeout=60) == b""


@pytest.mark.parametrize(
    ("code", "text"),
    [("", "ListAndWatch ended: the plugin closed the stream"), ("UNAVAILABLE", "ListAndWatch failed: x")],
)
async def test_the_end_of_a_stream_is_an_error(root: Path, code: str, text: str) -> None:
    async with FakeDevicePlugin(root) as plugin, connection("p", plugin.path, within=60, max_message=1 << 20) as on:
        async with aclosing(on.stream(f"{SERVICE}/ListAndWatch", b"")) as messages:
            await anext(messages)
            plugin.end_streams(code, "x")
            with pytest.raises(PluginUnavailable) as ended:
                await anext(messages)
    assert ended.value.message == text


async def test_leaving_a_stream_closes_it_at_the_plugin(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, connection("p", plugin.path, within=60, max_message=1 << 20) as on:
        async with aclosing(on.stream(f"{SERVICE}/ListAndWatch", b"")) as messages:
            await anext(messages)
            assert plugin.streams == 1
        with deadline():
            await plugin.until_streams(0)


async def test_a_restarted_plugin_is_reached_without_the_back_off_of_its_predecessor(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def long_back_off(max_message: int, within: float) -> list[tuple[str, Any]]:
        kept = [option for option in dial_options(max_message, within) if "reconnect_backoff" not in option[0]]
        return [*kept, ("grpc.initial_reconnect_backoff_ms", 600_000), ("grpc.max_reconnect_backoff_ms", 600_000)]

    monkeypatch.setattr(channels, "dial_options", long_back_off)
    async with FakeDevicePlugin(root) as plugin:
        async with connection("p", plugin.path, within=60, max_message=1 << 20) as old:
            await plugin.stop()
            for _ in range(20):
                with pytest.raises(PluginUnavailable):
                    await old.call(OPTIONS, b"", timeout=60)
            await plugin.start()
            with deadline():
                async with connection("p", plugin.path, within=600, max_message=1 << 20) as new:
                    await new.call(OPTIONS, b"", timeout=600)


@pytest.mark.parametrize("method", ["Allocate", "ListAndWatch"])
async def test_a_scope_of_the_caller_ends_a_call_and_is_marked_as_cancelled(root: Path, method: str) -> None:
    async with FakeDevicePlugin(root) as plugin, connection("p", plugin.path, within=60, max_message=1 << 20) as on:
        plugin.hang(method)
        with anyio.move_on_after(0.05) as scope:
            if method == "Allocate":
                await on.call(f"{SERVICE}/Allocate", b"", timeout=60)
            else:
                async with aclosing(on.stream(f"{SERVICE}/ListAndWatch", b"")) as messages:
                    await anext(messages)
        assert scope.cancelled_caught
        with anyio.move_on_after(0) as at_once:
            await on.call(OPTIONS, b"", timeout=60)
        assert at_once.cancelled_caught
        assert await on.call(OPTIONS, b"", timeout=60) == b""


@pytest.mark.spec("DN-12.2")
async def test_each_unary_call_is_observed_with_its_code_as_go_spells_it(root: Path) -> None:
    heard: list[tuple[str, str]] = []

    def observe(method: str, code: str, seconds: float) -> None:
        assert seconds >= 0
        heard.append((method, code))

    async with FakeDevicePlugin(root) as plugin:
        channel = grpc.aio.insecure_channel(target(plugin.path), options=dial_options(1 << 20, 5))
        on = Connection("p", plugin.path, None, channel, observe)
        await on.call(OPTIONS, b"", timeout=60)
        for code in ("UNIMPLEMENTED", "FAILED_PRECONDITION", "CANCELLED", "UNAVAILABLE"):
            plugin.fail("Allocate", code, "x")
            with pytest.raises(PluginError):
                await on.call(f"{SERVICE}/Allocate", b"", timeout=60)
        plugin.hang("Allocate")
        with pytest.raises(PluginUnavailable):
            await on.call(f"{SERVICE}/Allocate", b"", timeout=0.05)
        with anyio.move_on_after(0.05):
            await on.call(f"{SERVICE}/Allocate", b"", timeout=60)
        await on.close()
        with pytest.raises(PluginUnavailable):
            await on.call(OPTIONS, b"", timeout=60)
    asked = ["Unimplemented", "FailedPrecondition", "Canceled", "Unavailable", "DeadlineExceeded", "Canceled"]
    assert heard == [(OPTIONS, "OK"), *((f"{SERVICE}/Allocate", code) for code in asked), (OPTIONS, "Canceled")]
