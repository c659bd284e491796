import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.cli.node_socket import NodeSocket
from devlet.cli.session import Session
from devlet.cli.target import Target, checked_node, connect, own_node, server
from devlet.errors import InvalidInput

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


KUBECONFIG = """
{apiVersion: v1, kind: Config, current-context: one,
 clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443/prefix/"}}],
 users: [{name: u, user: {token: t}}],
 contexts: [{name: one, context: {cluster: c, user: u}}, {name: two, context: {cluster: c, user: u, namespace: team}}]}
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    return path


def test_without_a_word_it_is_the_default_root() -> None:
    found = server(Target(), {"XDG_STATE_HOME": "/x", "HOME": "/h", "KUBECONFIG": "/nope"})
    assert found.address == ("/var/lib/devlet/devlet.sock" if os.geteuid() == 0 else "/x/devlet/devlet.sock")


def test_a_root_is_taken_from_the_flag_then_from_the_environment() -> None:
    assert server(Target(root=Path("/a")), {"DEVLET_ROOT": "/b"}).address == "/a/devlet.sock"
    assert server(Target(), {"DEVLET_ROOT": "/b"}).address == "/b/devlet.sock"


def test_the_next_step_names_the_root_if_it_was_a_flag() -> None:
    gone = FileNotFoundError()
    assert "`devlet up --root /a`" in server(Target(root=Path("/a")), {}).trouble(gone)
    assert "`devlet up`" in server(Target(), {"DEVLET_ROOT": "/b"}).trouble(gone)


def test_a_kubeconfig_goes_before_all(kubeconfig: Path) -> None:
    found = server(Target(kubeconfig), {"DEVLET_ROOT": "/b", "KUBECONFIG": "/nope"})
    assert (found.address, found.namespace) == ("https://192.0.2.1:6443/prefix/", "default")
    assert server(Target(kubeconfig, "two"), {}).namespace == "team"


def test_kubeconfig_in_the_environment_counts_only_with_a_context_or_for_kubectl(kubeconfig: Path) -> None:
    environ = {"KUBECONFIG": str(kubeconfig), "DEVLET_ROOT": "/b"}
    assert isinstance(server(Target(), environ), NodeSocket)
    assert server(Target(context="two"), environ).namespace == "team"
    assert server(Target(of_kubectl=True), environ).address.startswith("https://192.0.2.1")
    assert isinstance(server(Target(root=Path("/a"), of_kubectl=True), environ), NodeSocket)


@pytest.mark.parametrize("target", [Target(Path("/k"), root=Path("/r")), Target(context="c", root=Path("/r"))])
def test_a_root_excludes_a_cluster(target: Target) -> None:
    with pytest.raises(InvalidInput, match="--root names a devlet on this machine"):
        server(target, {})


def test_a_missing_kubeconfig_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not found"):
        server(Target(tmp_path / "nope"), {})


def test_warnings_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    session = connect(Target(root=Path("/a")))
    session._warn("old")
    assert capsys.readouterr().err == "Warning: old\n"


def test_a_devlet_says_its_name_in_its_metrics(api: "API", session: Session) -> None:
    assert own_node(session) == ""
    api.texts["/metrics"] = '# TYPE kubelet_node_name gauge\nkubelet_node_name{node="n2"} 1\nother 1\n'
    assert own_node(session) == "n2"
    session.is_node = False
    assert own_node(session) == ""


def test_another_node_than_its_own_is_refused(api: "API", session: Session) -> None:
    assert (checked_node(session, "n1", "go there"), checked_node(session, "", "go there")) == ("n1", "")
    api.texts["/metrics"] = 'kubelet_node_name{node="n2"} 1\n'
    assert (checked_node(session, "n2", "go there"), checked_node(session, "", "go there")) == ("n2", "n2")
    with pytest.raises(InvalidInput, match="belongs to node n2, not n1: go there"):
        checked_node(session, "n1", "go there")
