import socket
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import Unavailable
from devlet.sdk.uevents import Uevent, UeventSocket, parse

ADD = (
    b"add@/devices/pci0000:00/0000:00:14.0/usb1/1-2\0ACTION=add\0DEVPATH=/devices/pci0000:00/0000:00:14.0/usb1/1-2\0"
    b"SUBSYSTEM=usb\0DEVTYPE=usb_device\0PRODUCT=403/6001/600\0SEQNUM=4711\0"
)
PATH = "/devices/pci0000:00/0000:00:14.0/usb1/1-2"


def test_a_message_of_the_kernel_is_read() -> None:
    event = parse(ADD)
    assert event is not None
    assert (event.action, event.path, event.subsystem) == ("add", PATH, "usb")
    assert event.properties["PRODUCT"] == "403/6001/600"


def test_a_value_may_contain_an_equals_sign_and_a_message_need_not_end_with_a_zero() -> None:
    assert parse(b"change@/x\0NAME=a=b") == Uevent("change", "/x", "", {"NAME": "a=b"})


@pytest.mark.parametrize(
    "blob",
    [b"", b"\0", b"libudev\0\xfe\xed\xca\xfe", b"add", b"@/x", b"add@", b"add@x\0SUBSYSTEM=usb", b"a d@/x", b"1@/x"],
)
def test_a_message_that_is_not_from_the_kernel_is_ignored(blob: bytes) -> None:
    assert parse(blob) is None


@given(st.binary())
def test_any_bytes_can_be_looked_at(blob: bytes) -> None:
    event = parse(blob)
    assert event is None or event.path.startswith("/")


@given(st.binary().map(ADD.__add__))
def test_what_follows_a_good_head_does_not_spoil_it(blob: bytes) -> None:
    event = parse(blob)
    assert event is not None and (event.action, event.path) == ("add", PATH)


words = st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1)


@given(words.map("/".__add__), st.dictionaries(words, words))
def test_properties_are_what_was_sent(path: str, properties: dict[str, str]) -> None:
    body = "\0".join([f"remove@{path}", *(f"{key}={value}" for key, value in properties.items())])
    assert parse(body.encode()) == Uevent("remove", path, properties.get("SUBSYSTEM", ""), properties)


class Kernel:
    """In the place of a netlink socket: what it sends can be chosen, which the kernel's own cannot."""

    def __init__(self, *messages: tuple[bytes, int] | OSError) -> None:
        self.here, self._there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.here.setblocking(False)
        self._messages = list(messages)
        for _ in messages:
            self._there.send(b"x")  # it is readable

    def fileno(self) -> int:
        return self.here.fileno()

    def recvfrom(self, size: int) -> tuple[bytes, tuple[int, int]]:
        self.here.recv(1)
        message = self._messages.pop(0)
        if isinstance(message, OSError):
            raise message
        return message[0][:size], (message[1], 1)

    def close(self) -> None:
        self.here.close()
        self._there.close()


@pytest.fixture
def uevents(monkeypatch: pytest.MonkeyPatch) -> Any:
    def listening(*messages: tuple[bytes, int] | OSError) -> UeventSocket:
        made = UeventSocket()
        made._socket.close()
        monkeypatch.setattr(made, "_socket", Kernel(*messages))
        return made

    return listening


@pytest.mark.anyio
async def test_only_the_kernel_is_believed(uevents: Any) -> None:
    with uevents((b"add@/forged\0SUBSYSTEM=usb", 4711), (b"junk", 0), (ADD, 0)) as heard:
        event = await heard.receive()
    assert event.path == PATH


@pytest.mark.anyio
async def test_lost_events_are_reported(uevents: Any) -> None:
    with uevents(OSError(105, "No buffer space available"), (ADD, 0)) as heard:
        assert await heard.receive() is None
        assert (await heard.receive()).path == PATH


@pytest.mark.anyio
async def test_other_errors_are_not_hidden(uevents: Any) -> None:
    with uevents(OSError(9, "Bad file descriptor")) as heard, pytest.raises(OSError, match="Bad file"):
        await heard.receive()


@pytest.mark.anyio
async def test_the_real_socket_waits_and_can_be_left() -> None:
    try:
        heard = UeventSocket()
    except Unavailable as e:
        pytest.skip(str(e))
    with heard, anyio.move_on_after(0):
        await heard.receive()


def test_a_refused_netlink_socket_is_reported_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("devlet.sdk.uevents.socket.socket", forbidden)
    with pytest.raises(Unavailable, match="uevents cannot be received: Operation not permitted"):
        UeventSocket()


def test_a_socket_that_may_not_hear_the_kernel_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    class Deaf:
        def setsockopt(self, *_: object) -> None: ...

        def bind(self, *_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        def close(self) -> None:
            closed.append(True)

    monkeypatch.setattr("devlet.sdk.uevents.socket.socket", lambda *_: Deaf())
    with pytest.raises(Unavailable, match="Operation not permitted"):
        UeventSocket()
    assert closed == [True]
