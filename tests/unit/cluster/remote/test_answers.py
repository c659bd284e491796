import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.client import EventType
from devlet.cluster.remote.answers import Lines, document, event, page, warnings
from devlet.errors import DevletError, Expired, TooLarge
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.statuses import failure


def test_items_get_the_kind_that_lists_leave_out() -> None:
    body = (
        b'{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}'
    )
    found = page(RESOURCE_CLAIMS, body)
    assert found.items[1] == {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "b"},
    }
    assert (found.resource_version, found.continue_, found.remaining) == ("7", "", None)
    assert [item["metadata"]["name"] for item in found.items[:1]] == ["a"]
    assert len(found.items) == 2


def test_a_page_knows_what_is_left() -> None:
    body = b'{"metadata": {"resourceVersion": "7", "continue": "t", "remainingItemCount": 3}, "items": null}'
    found = page(RESOURCE_CLAIMS, body)
    assert (list(found.items), found.continue_, found.remaining) == ([], "t", 3)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items": 7}', b'{"items": [', b"\xff", b"[" * 100_000])
def test_a_malformed_answer_is_an_error(body: bytes) -> None:
    with pytest.raises(DevletError, match="malformed"):
        page(RESOURCE_CLAIMS, body)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff", b"7"])
def test_a_document_is_an_object(body: bytes) -> None:
    with pytest.raises(DevletError, match="not a JSON object"):
        document(body)


def test_an_item_that_is_not_an_object_is_an_error_when_it_is_read() -> None:
    found = page(RESOURCE_CLAIMS, b'{"items": [7]}')
    with pytest.raises(DevletError):
        found.items[0]


def test_events_have_a_type_and_an_object() -> None:
    found = event(b'{"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}}')
    assert (found.type, found.object["metadata"]) == (EventType.BOOKMARK, {"resourceVersion": "9"})


def test_an_error_frame_is_raised() -> None:
    frame = {"type": "ERROR", "object": failure(410, "Expired", "too old resource version: 300 (543)")}
    with pytest.raises(Expired, match="too old resource version: 300"):
        event(msgspec.json.encode(frame))


@pytest.mark.parametrize(
    "line",
    [
        b"rubbish",
        b"{}",
        b'{"type": "ADDED", "object": 1}',
        b'{"type": "NEW", "object": {}}',
        b'{"type": "ADDED", "object": {}}',
    ],
)
def test_an_event_that_is_none_is_an_error(line: bytes) -> None:
    with pytest.raises(DevletError, match="a watch event"):
        event(line)


@given(st.lists(st.binary(max_size=8).filter(lambda line: b"\n" not in line)), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + b"\n" for line in lines) + b"cut off"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    reader = Lines(100)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += reader.feed(text[start:end])
    assert found == [line for line in lines if line.strip()]


@pytest.mark.parametrize("chunks", [[b"x" * 11], [b"x" * 6, b"x" * 6], [b"x" * 6, b"x" * 6 + b"\n"]])
def test_a_line_has_a_limit(chunks: list[bytes]) -> None:
    reader = Lines(10)
    with pytest.raises(TooLarge, match="more than 10 bytes"):
        for chunk in chunks:
            reader.feed(chunk)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (['299 - "unknown field \\"foo\\""'], ['unknown field "foo"']),
        (['299 - "a", 299 - "b, c"', '299 - "d" "Sat, 01 Jan 2000 00:00:00 GMT"'], ["a", "b, c", "d"]),
        (["", "rubbish", '299 "x"', '299 - "open'], []),
    ],
)
def test_warnings_are_unquoted(headers: list[str], expected: list[str]) -> None:
    assert warnings(headers) == expected


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126)), min_size=1, max_size=4))
def test_warnings_survive_their_quotes(texts: list[str]) -> None:
    quoted = ['299 - "' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts]
    assert warnings(quoted) == warnings([", ".join(quoted)]) == texts
