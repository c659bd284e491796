from typing import TYPE_CHECKING

import pytest

from devlet.cli.own_node import checked, own_node
from devlet.cli.session import Session
from devlet.errors import InvalidInput

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


def test_a_devlet_says_its_name_in_its_metrics(api: "API", session: Session) -> None:
    assert own_node(session) == ""
    api.texts["/metrics"] = '# TYPE kubelet_node_name gauge\nkubelet_node_name{node="n2"} 1\nother 1\n'
    assert own_node(session) == "n2"
    session.is_node = False
    assert own_node(session) == ""


def test_another_node_than_its_own_is_refused(api: "API", session: Session) -> None:
    assert (checked(session, "n1", "go there"), checked(session, "", "go there")) == ("n1", "")
    api.texts["/metrics"] = 'kubelet_node_name{node="n2"} 1\n'
    assert (checked(session, "n2", "go there"), checked(session, "", "go there")) == ("n2", "n2")
    with pytest.raises(InvalidInput, match="is node n2, not n1: go there"):
        checked(session, "n1", "go there")
