import socket
import threading
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cli import http1
from devlet.cli.http1 import Line, query_text, quote


@pytest.fixture
def ends() -> Iterator[tuple[Line, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(60)
    line = Line(ours)
    yield line, theirs
    line.close()
    theirs.close()


def ask(ends: tuple[Line, socket.socket], answer: bytes, *, close: bool = True) -> http1.Answer:
    line, server = ends
    server.sendall(answer)
    if close:
        server.shutdown(socket.SHUT_WR)
    return line.request("GET", "/x", [("Host", "h")])


@pytest.mark.parametrize(
    ("raw", "body", "closes"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", b"", True),
        (
            b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nTrailer: t\r\n\r\n",
            b"abc",
            False,
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x", False),
        (b"HTTP/1.1 200 OK\nContent-Length: 1\n\nx", b"x", False),
    ],
)
def test_answers_are_read(ends: tuple[Line, socket.socket], raw: bytes, body: bytes, closes: bool) -> None:
    answer = ask(ends, raw)
    assert (answer.status, answer.read(100), answer.closes) == (200, body, closes)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 300,
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000,
    ],
)
def test_an_invalid_response_is_a_connection_error(ends: tuple[Line, socket.socket], raw: bytes) -> None:
    with pytest.raises(ConnectionError):
        ask(ends, raw).read(100)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_connection_error(raw: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        line = Line(ours)
        try:
            answer = ask((line, theirs), raw)
            assert answer.read(1000) is not None
        except ConnectionError as e:
            assert str(e)
        finally:
            line.close()


def test_a_long_body_is_not_read_to_its_end(ends: tuple[Line, socket.socket]) -> None:
    assert ask(ends, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde").read(4) is None


def test_lines_come_as_soon_as_they_are_there(ends: tuple[Line, socket.socket]) -> None:
    answer = ask(ends, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n", close=False)
    lines = answer.lines(100)
    assert next(lines) == b"a"
    threading.Timer(0, ends[1].sendall, [b"3\r\nc\nd\r\n0\r\n\r\n"]).start()
    assert list(lines) == [b"bc", b"d"]


def test_a_line_has_a_limit(ends: tuple[Line, socket.socket]) -> None:
    answer = ask(ends, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcdefghi")
    with pytest.raises(ConnectionError, match="longer than 4 bytes"):
        list(answer.lines(4))


def test_a_request_is_one_piece(ends: tuple[Line, socket.socket]) -> None:
    line, server = ends
    server.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert line.request("POST", "/p?q", [("Host", "h"), ("A", "b")], b"{}").read(10) == b""
    assert server.recv(1000) == b"POST /p?q HTTP/1.1\r\nHost: h\r\nA: b\r\nContent-Length: 2\r\n\r\n{}"


def test_nothing_can_be_smuggled_into_a_request(ends: tuple[Line, socket.socket]) -> None:
    with pytest.raises(ConnectionError, match="line breaks"):
        ends[0].request("GET", "/", [("A", "b\r\nEvil: yes")])


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoted_text_can_be_unquoted_by_any_server(text: str) -> None:
    assert unquote(quote(text)) == text
    assert quote(text).isascii() and not {"/", "?", "&", " "} & set(quote(text))


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
            st.text(st.characters(exclude_categories=["Cs"])),
        )
    )
)
def test_queries_are_read_back(pairs: list[tuple[str, str]]) -> None:
    assert parse_qsl(query_text(pairs).removeprefix("?"), keep_blank_values=True, max_num_fields=None) == pairs
