from pathlib import Path

import pytest

from devlet.cluster.remote.connection import Connection, Credentials, ExecPlugin, KeyPair, at_socket
from devlet.errors import InvalidInput


@pytest.mark.parametrize(
    "server",
    ["", "localhost:6443", "ftp://x", "https://", "https://h:99999", "https://u:p@h", "https://h?x=1", "https://[::"],
)
def test_a_server_is_a_url(server: str) -> None:
    with pytest.raises(InvalidInput, match="expected a URL"):
        Connection(server)


def test_an_authority_that_is_not_asked_is_a_mistake() -> None:
    with pytest.raises(InvalidInput, match="exclude each other"):
        Connection("https://h", ca=b"pem", verify=False)


def test_credentials_are_not_sent_where_everybody_can_read_them() -> None:
    assert Connection("https://h/prefix").sends_credentials
    assert not Connection("http://h").sends_credentials
    assert at_socket(Path("/run/s")).sends_credentials
    assert not at_socket(Path("/run/s")).is_tls


def test_people_see_the_url_or_the_socket() -> None:
    assert Connection("https://h:1").address == "https://h:1"
    assert at_socket(Path("/run/s")).address == "/run/s"


def test_secrets_are_not_shown() -> None:
    plugin = ExecPlugin("p", "v1", ("--secret=hidden",), {"SECRET": "hidden"})
    credentials = Credentials(KeyPair(b"shown", b"hidden"), "hidden", exec_plugin=plugin)
    assert "hidden" not in repr(Connection("https://h", credentials=credentials))
