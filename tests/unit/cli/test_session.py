import threading
from typing import TYPE_CHECKING

import pytest

from devlet.cli import session as module
from devlet.cli.session import METADATA, Session, segment
from devlet.errors import DevletError, Forbidden, InvalidInput, NotFound, TooLarge, Unavailable

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API

NODES = "/api/v1/nodes"


def test_documents_are_read_and_written(session: Session, api: "API") -> None:
    code, made = session.send("PATCH", f"{NODES}/n", {"spec": {"x": 1}}, query=[("a", "b c")])
    assert (code, made["spec"]) == (201, {"x": 1})
    assert session.get(f"{NODES}/n", accept=METADATA)["metadata"]["name"] == "n"
    assert api.requests[0] == ("PATCH", f"{NODES}/n?a=b%20c", {"spec": {"x": 1}})


def test_one_connection_serves_many_requests(session: Session, api: "API") -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        session.get(NODES)
    assert len(set(threading.enumerate()) - before) == 1  # the server has a thread per connection
    assert len(api.requests) == 3


def test_an_idle_connection_is_replaced(session: Session, api: "API", monkeypatch: pytest.MonkeyPatch) -> None:
    session.get(NODES)
    first = session._open
    monkeypatch.setattr(module, "REST", -1.0)
    session.get(NODES)
    assert session._open is not first


def test_pages_follow_each_other(session: Session, api: "API") -> None:
    api.answers["GET", NODES] = (200, {"metadata": {"continue": "more"}})
    pages = session.pages(NODES, [("x", "y")])
    next(pages)
    api.answers["GET", NODES] = (200, {"metadata": {}})
    assert list(pages) == [{"metadata": {}}]
    assert [path for _, path, _ in api.requests] == [f"{NODES}?x=y&limit=500", f"{NODES}?x=y&limit=500&continue=more"]


def test_errors_of_the_server_become_ours(session: Session, api: "API") -> None:
    with pytest.raises(NotFound, match='nodes "n" not found'):
        session.get(f"{NODES}/n")
    api.answers["GET", NODES] = (401, {"kind": "Status", "code": 401, "message": "who?"})
    with pytest.raises(Forbidden, match=r"does not accept the credentials: who\?"):
        session.get(NODES)


def test_a_request_is_repeated_only_where_the_server_asks_for_it(session: Session, api: "API") -> None:
    api.answers["GET", NODES] = (503, {"kind": "Status", "code": 503, "message": "busy"})
    with pytest.raises(Unavailable, match="busy"):
        session.get(NODES)
    assert len(api.requests) == 1
    api.headers.append(("Retry-After", "0"))
    with pytest.raises(Unavailable, match="busy"):
        session.get(NODES)
    assert len(api.requests) == 1 + 1 + module.RETRIES


def test_warnings_reach_people(session: Session, api: "API") -> None:
    api.headers += [("Warning", '299 - "v1 is \\"old\\""'), ("Warning", "odd")]
    session.get(NODES)
    assert api.warnings == ['v1 is "old"', "odd"]


def test_a_server_that_is_not_kubernetes_is_reported(session: Session, api: "API") -> None:
    api.answers["GET", NODES] = (200, [])  # type: ignore[assignment]
    with pytest.raises(DevletError, match="is this a Kubernetes API"):
        session.get(NODES)


def test_an_answer_has_a_limit(session: Session, api: "API", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 10)
    with pytest.raises(TooLarge, match="larger than 10 bytes"):
        session.get(NODES)


def test_a_watch_ends_with_its_timeout(session: Session, api: "API") -> None:
    api.put(f"{NODES}/n", {})
    events = session.watch(NODES, [("resourceVersion", "0")], timeout=2)
    assert [event["object"]["metadata"]["name"] for event in events] == ["n"]
    assert "timeoutSeconds=2" in api.requests[-1][1]


def test_a_watch_that_is_refused_is_an_error(session: Session, api: "API") -> None:
    api.answers["GET", NODES] = (403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})
    with pytest.raises(Forbidden, match="no"):
        list(session.watch(NODES))


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "a%20", "a\n", "a\x1b"])
def test_a_name_cannot_lead_elsewhere(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"name .* of a pod: expected a name"):
        segment(text, "pod")
