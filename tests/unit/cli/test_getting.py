from typing import TYPE_CHECKING

import pytest

from devlet.cli.getting import Request, get
from devlet.cli.session import Session
from devlet.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


def test_objects_are_read_without_any_command_line(
    session: Session, api: "API", capsys: pytest.CaptureFixture[str]
) -> None:
    api.put("/api/v1/namespaces/team/pods/p", {})
    get(session, "team", Request(("pods",), "name"))
    assert capsys.readouterr().out == "pod/p\n"


def test_everything_that_is_missing_is_reported_at_once(session: Session) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        get(session, "", Request(("pods", "a", "b")))
    assert [type(error) for error in raised.value.exceptions] == [NotFound, NotFound]


def test_a_wrong_request_asks_the_server_nothing(session: Session, api: "API") -> None:
    with pytest.raises(InvalidInput):
        get(session, "", Request(("pods",), "xml"))
    assert api.requests == []


def test_a_kind_that_may_not_be_listed_does_not_hide_the_others(
    session: Session, api: "API", capsys: pytest.CaptureFixture[str]
) -> None:
    api.put("/api/v1/nodes/n", {})
    api.answers["GET", "/api/v1/namespaces/default/pods"] = (403, {"kind": "Status", "code": 403, "message": "no"})
    with pytest.raises(ExceptionGroup, match="get"):
        get(session, "", Request(("pods,nodes",), "name"))
    assert capsys.readouterr().out == "node/n\n"
