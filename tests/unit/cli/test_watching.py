import time
from typing import TYPE_CHECKING

import pytest

from devlet.cli import watching
from devlet.cli.resources import Resource
from devlet.cli.session import Session
from devlet.cli.watching import changes, deadline_in, gone, states
from devlet.errors import Expired

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API

NODES = Resource("", "v1", "nodes", "node", "Node", False)
PATH = "/api/v1/nodes"
EXPIRED: dict[str, object] = {
    "type": "ERROR",
    "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"},
}


class Scripted(Session):
    """The server's side of each watch is given; lists come from the API."""

    streams: list[list[dict[str, object]]]

    def watch(self, path, query=(), *, accept="", timeout=None):  # type: ignore[no-untyped-def]
        self.asked = [*getattr(self, "asked", []), dict(query)["resourceVersion"]]
        return iter(self.streams.pop(0) if self.streams else [])


@pytest.fixture
def scripted(session: Session, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    monkeypatch.setattr(watching, "PAUSE", 0.0)
    session.__class__ = Scripted
    assert isinstance(session, Scripted)
    return session


def event(type_: str, version: str) -> dict[str, object]:
    return {"type": type_, "object": {"metadata": {"name": "n", "resourceVersion": version}}}


def test_a_stream_that_ends_goes_on_from_the_last_version(scripted: Scripted) -> None:
    row: dict[str, object] = {
        "type": "ADDED",
        "object": {"kind": "Table", "rows": [{"object": {"metadata": {"resourceVersion": "7"}}}]},
    }
    scripted.streams = [[event("ADDED", "5"), event("BOOKMARK", "6")], [], [row], [EXPIRED]]
    found = changes(scripted, PATH, [], "1")
    assert [next(found)[0], next(found)[0]] == ["ADDED", "ADDED"]
    with pytest.raises(Expired, match="too old"):
        next(found)
    assert scripted.asked == ["1", "6", "6", "7"]


def test_a_state_that_is_too_old_is_read_again(scripted: Scripted, api: "API") -> None:
    scripted.streams = [[EXPIRED], [event("DELETED", "9")]]
    found = states(scripted, NODES, "", "n")
    assert next(found) is None
    api.put(f"{PATH}/n", {})
    second = next(found)
    assert second is not None and (second["kind"], second["metadata"]["name"]) == ("Node", "n")
    assert next(found) is None


def test_following_ends_at_the_deadline(session: Session, api: "API") -> None:
    api.put(f"{PATH}/n", {})
    assert len(list(states(session, NODES, "", "n", deadline=deadline_in(0.1)))) == 1
    assert list(changes(session, PATH, [], "0", deadline=time.monotonic() - 1)) == []


def test_an_object_with_another_uid_is_another_object(session: Session, api: "API") -> None:
    assert gone(session, NODES, "", "n", "u", None)
    api.put(f"{PATH}/n", {"metadata": {"uid": "u"}})
    assert gone(session, NODES, "", "n", "other", None)
    assert not gone(session, NODES, "", "n", "u", deadline_in(0.05))
