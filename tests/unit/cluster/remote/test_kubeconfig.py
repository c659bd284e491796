import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.connection import Connection, KeyPair
from devlet.errors import InvalidInput

PEM = base64.b64encode(b"pem").decode()


def config(cluster: Any = None, user: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **more,
    }


def write(path: Path, document: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(document))
    return path


def connect(tmp_path: Path, cluster: Any = None, user: Any = None, context: str = "", **more: Any) -> Connection:
    return kubeconfig.connection([write(tmp_path / "config", config(cluster, user, **more))], context)


def test_a_kubeconfig_says_where_and_as_whom(tmp_path: Path) -> None:
    found = connect(tmp_path, {"certificate-authority-data": PEM, "tls-server-name": "api"}, {"token": "t"})
    assert (found.server, found.ca, found.tls_server_name, found.verify) == ("https://h:6443", b"pem", "api", True)
    assert (found.credentials.token, found.namespace) == ("t", "default")


def test_a_context_has_a_namespace(tmp_path: Path) -> None:
    contexts = [
        {"name": "x", "context": {"cluster": "c", "user": "u"}},
        {"name": "y", "context": {"cluster": "c", "user": "u", "namespace": "blue"}},
    ]
    assert connect(tmp_path, contexts=contexts).namespace == "default"
    assert connect(tmp_path, contexts=contexts, context="y").namespace == "blue"


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"authority")
    user = {"client-certificate": "c.pem", "client-key": "/k.pem", "tokenFile": "sub/token"}
    found = connect(tmp_path, {"certificate-authority": "ca.pem"}, user)
    assert found.ca == b"authority"
    assert found.credentials.key_pair == KeyPair(tmp_path / "c.pem", Path("/k.pem"))
    assert found.credentials.token_file == tmp_path / "sub" / "token"


def test_data_goes_before_files(tmp_path: Path) -> None:
    user = {"client-certificate": "c", "client-certificate-data": PEM, "client-key": "k", "client-key-data": PEM}
    found = connect(tmp_path, {"certificate-authority": "absent", "certificate-authority-data": PEM}, user)
    assert (found.ca, found.credentials.key_pair) == (b"pem", KeyPair(b"pem", b"pem"))


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    assert not connect(tmp_path, {"insecure-skip-tls-verify": True}).verify


def test_another_user_can_be_impersonated(tmp_path: Path) -> None:
    user = {"as": "jane", "as-uid": "1", "as-groups": ["a", "b"], "as-user-extra": {"k": ["v", "w"]}}
    who = connect(tmp_path, user=user).impersonate
    assert (who.user, who.uid, who.groups, dict(who.extra)) == ("jane", "1", ("a", "b"), {"k": ("v", "w")})


def test_an_exec_plugin_is_described(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/login",
        "args": ["--x"],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "install it",
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    found = connect(
        tmp_path, {"certificate-authority-data": PEM, "extensions": [extension]}, {"exec": plugin}
    ).credentials.exec_plugin
    assert found is not None
    assert (found.command, found.args, found.env) == (str(tmp_path / "bin" / "login"), ("--x",), {"A": "b"})
    assert found.install_hint == "install it"
    assert found.cluster == {
        "server": "https://h:6443",
        "certificate-authority-data": PEM,
        "config": {"audience": "me"},
    }


def test_an_exec_plugin_without_a_slash_is_looked_up(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "login"}
    found = connect(tmp_path, user={"exec": plugin}).credentials.exec_plugin
    assert found is not None and (found.command, found.cluster) == ("login", None)


@pytest.mark.parametrize(
    ("cluster", "user", "expected"),
    [
        ({"proxy-url": "http://p"}, {}, "cluster 'c': proxy-url is not supported"),
        ({"server": ""}, {}, "expected a URL"),
        ({"certificate-authority": "absent"}, {}, "absent: No such file"),
        ({"certificate-authority-data": "*"}, {}, "cluster 'c': .*not base64"),
        ({"certificate-authority-data": PEM, "insecure-skip-tls-verify": True}, {}, "exclude each other"),
        ({}, {"client-certificate": "c"}, "user 'u': a client certificate needs its key"),
        ({}, {"auth-provider": {"name": "gcp"}}, "user 'u': auth-provider is not supported"),
        ({}, {"username": "a", "password": "b"}, "username and password are not supported"),
        ({}, {"as-groups": ["g"]}, "need as"),
        ({}, {"exec": {"command": "c", "apiVersion": "v1"}}, "exec apiVersion 'v1'"),
        ({}, {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, "exec has no command"),
        (
            {},
            {
                "exec": {
                    "command": "c",
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "interactiveMode": "Always",
                }
            },
            "wants a terminal",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(tmp_path: Path, cluster: Any, user: Any, expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        connect(tmp_path, cluster, user)


def test_an_entry_that_is_not_used_is_not_judged(tmp_path: Path) -> None:
    users = [{"name": "u", "user": {}}, {"name": "old", "user": {"auth-provider": {}}}]
    assert connect(tmp_path, users=users).server == "https://h:6443"


@pytest.mark.parametrize(
    ("more", "context", "expected"),
    [
        ({"current-context": ""}, "", "no current context; name one of x"),
        ({"current-context": "", "contexts": []}, "", "it has no contexts, so it names no cluster"),
        ({"contexts": []}, "", "it has no contexts, so it names no cluster"),
        ({}, "z", "no context 'z'; there is x"),
        ({"clusters": []}, "", "context 'x': no cluster 'c'"),
        ({"users": []}, "", "context 'x': no user 'u'"),
        ({"users": [{"name": "u"}, {"name": "u"}]}, "", "user 'u' is there twice"),
    ],
)
def test_a_context_that_leads_nowhere_says_so(tmp_path: Path, more: Any, context: str, expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        connect(tmp_path, context=context, **more)


def test_the_first_file_that_names_a_thing_wins(tmp_path: Path) -> None:
    first = {"current-context": "x", "users": [{"name": "u", "user": {"tokenFile": "token"}}]}
    second = config({"server": "https://second"}, {"token": "other"}, **{"current-context": "y"})
    files = [
        write(tmp_path / "1" / "config", first),
        tmp_path / "absent",
        write(tmp_path / "2" / "config", second),
        write(tmp_path / "3" / "config", config({"server": "https://third"})),
    ]
    found = kubeconfig.connection(files)
    assert found.server == "https://second"
    assert (found.credentials.token, found.credentials.token_file) == ("", tmp_path / "1" / "token")


def test_at_least_one_file_exists(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no kubeconfig: .*absent not found"):
        kubeconfig.load([tmp_path / "absent"])


def test_the_files_are_those_of_kubectl() -> None:
    assert kubeconfig.paths({"KUBECONFIG": "/a::/b:/a", "HOME": "/h"}) == [Path("/a"), Path("/b")]
    assert kubeconfig.paths({"HOME": "/h"}) == [Path("/h/.kube/config")]


def test_contexts_are_listed(tmp_path: Path) -> None:
    assert kubeconfig.load([write(tmp_path / "config", config())]).contexts == ["x"]
