import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.remote.connection import ExecPlugin, KeyPair
from devlet.cluster.remote.exec_plugin import MAX_ANSWER_BYTES, Issued, decode, issue
from devlet.errors import InvalidInput, Unavailable

pytestmark = pytest.mark.anyio

V1 = "client.authentication.k8s.io/v1"
PLUGIN = ExecPlugin("/opt/bin/login", V1, install_hint="get it from the shop")


def credential(api_version: str = V1, kind: str = "ExecCredential", **status: str) -> bytes:
    return msgspec.json.encode({"apiVersion": api_version, "kind": kind, "status": status})


def program(tmp_path: Path, text: str) -> str:
    path = tmp_path / "login"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_token_is_read_with_its_end() -> None:
    answer = credential(token="t", expirationTimestamp="2030-01-02T03:04:05Z")
    assert decode(PLUGIN, answer) == Issued("t", None, datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC))


def test_a_certificate_is_read_with_its_key() -> None:
    answer = credential(clientCertificateData="c", clientKeyData="k")
    assert decode(PLUGIN, answer) == Issued("", KeyPair(b"c", b"k"), None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"", "did not print an ExecCredential"),
        (b"[]", "did not print an ExecCredential"),
        (credential("client.authentication.k8s.io/v1beta1", token="t"), "expected client.authentication.k8s.io/v1 "),
        (credential(kind="Pod", token="t"), "printed client.authentication.k8s.io/v1 Pod"),
        (credential(), "neither a token nor a certificate"),
        (credential(clientCertificateData="c"), "without its key"),
        (credential(token="t", expirationTimestamp="soon"), "expirationTimestamp"),
        (b" " * (MAX_ANSWER_BYTES + 1), "printed more than"),
    ],
)
def test_an_answer_that_is_none_is_refused_with_the_hint(answer: bytes, expected: str) -> None:
    with pytest.raises(InvalidInput, match=f"credential plugin login: .*{expected}") as refused:
        decode(PLUGIN, answer)
    assert str(refused.value).endswith("get it from the shop")


@given(st.binary(max_size=60))
def test_no_answer_crashes(answer: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode(PLUGIN, answer)


async def test_a_plugin_gets_its_arguments_and_environment(tmp_path: Path) -> None:
    text = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = [sys.argv[1], os.environ['A'], info['apiVersion'], info['spec'], sys.stdin.read()]\n"
        "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion'],"
        " 'status': {'token': json.dumps(token)}}))"
    )
    plugin = ExecPlugin(program(tmp_path, text), V1, ("x",), {"A": "b"}, cluster={"server": "https://h"})
    issued = await issue(plugin, 10)
    spec = {"interactive": False, "cluster": {"server": "https://h"}}
    assert msgspec.json.decode(issued.token) == ["x", "b", V1, spec, ""]


async def test_a_plugin_that_fails_says_why(tmp_path: Path) -> None:
    plugin = ExecPlugin(program(tmp_path, "sys.exit('you are logged out')"), V1, install_hint="log in")
    with pytest.raises(Unavailable, match="login: exit code 1: you are logged out\nlog in"):
        await issue(plugin, 10)


async def test_a_plugin_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    plugin = ExecPlugin(str(tmp_path / "absent"), V1, install_hint="get it from the shop")
    with pytest.raises(InvalidInput, match=r"(?s)absent: No such file.*get it from the shop"):
        await issue(plugin, 10)


async def test_a_plugin_that_hangs_is_stopped(tmp_path: Path) -> None:
    plugin = ExecPlugin(program(tmp_path, "import time; time.sleep(60)"), V1)
    with pytest.raises(Unavailable, match=r"no answer within 0\.1 s"):
        await issue(plugin, 0.1)
