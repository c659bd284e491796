from typing import TYPE_CHECKING

import pytest

from devlet.cli.resources import Resources
from devlet.cli.session import Session
from devlet.cli.views.reader import Reader
from devlet.errors import Unavailable

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API

FORBIDDEN = (403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})


@pytest.fixture
def reader(session: Session) -> Reader:
    return Reader(session, Resources(session))


def test_what_is_gone_or_hidden_is_not_there(reader: Reader, api: "API") -> None:
    api.put("/api/v1/namespaces/x/pods/p", {})
    assert reader.one("pods", "x", "p") is not None
    assert len(reader.all("pods")) == 1
    assert reader.one("pods", "x", "nope") is None
    assert reader.one("nothing", "x", "p") is None
    api.answers["GET", "/api/v1/pods"] = FORBIDDEN
    assert reader.all("pods") == []


def test_a_server_in_trouble_is_not_hidden(reader: Reader, api: "API") -> None:
    api.answers["GET", "/api/v1/pods"] = (503, {"kind": "Status", "code": 503, "message": "later"})
    with pytest.raises(Unavailable, match="later"):
        reader.all("pods")
