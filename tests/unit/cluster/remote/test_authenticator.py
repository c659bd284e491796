import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.cluster.remote.authenticator import Authenticator
from devlet.cluster.remote.connection import Connection, Credentials, ExecPlugin, Impersonation, KeyPair, at_socket
from devlet.cluster.remote.settings import Settings
from devlet.errors import InvalidInput
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

SERVER = "https://h"
V1 = "client.authentication.k8s.io/v1"


def authenticator(credentials: Credentials, clock: FakeClock | None = None, **connection: Any) -> Authenticator:
    return Authenticator(Connection(SERVER, credentials=credentials, **connection), Settings(), clock or FakeClock())


async def token(subject: Authenticator) -> str:
    (authorization,) = [value for name, value in (await subject.proof()).headers if name == "Authorization"]
    return authorization.removeprefix("Bearer ")


async def test_a_token_is_sent_as_it_is() -> None:
    subject = authenticator(Credentials(token="t"))
    assert (await subject.proof()).headers == [("Authorization", "Bearer t")]
    assert not subject.renew()


async def test_without_credentials_nothing_is_claimed() -> None:
    proof = await authenticator(Credentials()).proof()
    assert (proof.headers, proof.tls is None) == ([], False)


async def test_nothing_is_claimed_where_everybody_can_read_it() -> None:
    connection = Connection("http://h", credentials=Credentials(token="t"), impersonate=Impersonation("jane"))
    proof = await Authenticator(connection, Settings(), FakeClock()).proof()
    assert (proof.headers, proof.tls) == ([], None)


async def test_a_socket_needs_no_tls() -> None:
    proof = await Authenticator(at_socket(Path("/run/s")), Settings(), FakeClock()).proof()
    assert (proof.headers, proof.tls) == ([], None)


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", FakeClock()
    path.write_text("old\n")
    subject = authenticator(Credentials(token="never", token_file=path), clock)
    assert await token(subject) == "old"
    path.write_text("new\n")
    assert await token(subject) == "old"
    await clock.advance(60)
    assert await token(subject) == "new"


async def test_a_token_file_is_read_again_when_the_server_refuses_its_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    subject = authenticator(Credentials(token_file=path))
    assert await token(subject) == "old"
    path.write_text("new")
    assert subject.renew()
    assert await token(subject) == "new"


async def test_while_a_token_file_is_away_the_last_token_has_to_do(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", FakeClock()
    path.write_text("old")
    subject = authenticator(Credentials(token_file=path), clock)
    assert await token(subject) == "old"
    path.unlink()
    await clock.advance(60)
    assert await token(subject) == "old"


@pytest.mark.parametrize("content", [None, b"", b"\n", b"a\nb", b"\xff", b"x" * (2 << 20)])
async def test_a_token_file_without_a_token_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput):
        await authenticator(Credentials(token_file=path)).proof()


async def test_certificates_in_files_are_replaced_under_us(tmp_path: Path, authority: Any) -> None:
    paths, clock = (tmp_path / "c", tmp_path / "k"), FakeClock()
    subject = authenticator(Credentials(KeyPair(*paths)), clock)

    def write() -> None:
        for path, content in zip(paths, authority.issue("me"), strict=True):
            path.write_bytes(content)

    write()
    first = (await subject.proof()).tls
    await clock.advance(60)
    assert (await subject.proof()).tls is first, "nothing changed, so connections stay"
    write()
    await clock.advance(60)
    assert (await subject.proof()).tls is not first


def counting(tmp_path: Path, status: str) -> ExecPlugin:
    """A plugin whose n-th token is tN; `status` has more members of what it prints."""
    counter = tmp_path / "runs"
    counter.write_text("")
    path = tmp_path / "login"
    path.write_text(
        f"#!{sys.executable}\nimport json\n"
        f"open({str(counter)!r}, 'a').write('x')\nn = len(open({str(counter)!r}).read())\n"
        f"status = {{'token': f't{{n}}', {status}}}\n"
        f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {V1!r}, 'status': status}}))\n"
    )
    path.chmod(0o755)
    return ExecPlugin(str(path), V1)


async def test_a_plugin_is_run_again_when_its_token_expires(tmp_path: Path) -> None:
    clock = FakeClock()
    plugin = counting(tmp_path, f"'expirationTimestamp': '{clock.now():%Y-%m-%dT%H:%M:59Z}'")
    subject = authenticator(Credentials(exec_plugin=plugin), clock)
    assert [await token(subject), await token(subject)] == ["t1", "t1"]
    await clock.advance(59)
    assert await token(subject) == "t2"


async def test_a_plugin_is_run_once_for_all_waiting_requests(tmp_path: Path) -> None:
    subject = authenticator(Credentials(exec_plugin=counting(tmp_path, "")))
    found = []

    async def ask() -> None:
        found.append(await token(subject))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
    assert found == ["t1"] * 5
    assert subject.renew()
    assert await token(subject) == "t2"


async def test_a_plugin_may_issue_a_certificate(tmp_path: Path, authority: Any) -> None:
    certificate, key = authority.issue("me")
    status = f"'clientCertificateData': {certificate.decode()!r}, 'clientKeyData': {key.decode()!r}"
    subject = authenticator(Credentials(exec_plugin=counting(tmp_path, status)))
    first = await subject.proof()
    assert first.tls is (await subject.proof()).tls is not None


async def test_impersonation_is_said_in_headers() -> None:
    who = Impersonation("jane", "1", ("a", "b"), {"Example.com/K": ("v", "w")})
    proof = await authenticator(Credentials(), impersonate=who).proof()
    assert proof.headers == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fk", "v"),
        ("Impersonate-Extra-example.com%2Fk", "w"),
    ]


async def test_nothing_is_smuggled_into_headers() -> None:
    with pytest.raises(InvalidInput, match="unprintable"):
        await authenticator(Credentials(), impersonate=Impersonation("jane\r\nX: y")).proof()
    with pytest.raises(InvalidInput, match="unprintable"):
        await authenticator(Credentials(token="t\r\nX: y")).proof()
