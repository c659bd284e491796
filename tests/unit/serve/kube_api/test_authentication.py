import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from devlet.errors import Forbidden
from devlet.serve.kube_api.authentication import Authenticator, Unauthorized, certificate_user, peer_uid, peer_user
from devlet.serve.kube_api.certificates import new_key
from devlet.serve.kube_api.requests import ANONYMOUS, User
from devlet.serve.kube_api.tokens import ISSUER, Binding, Reference, StaticTokens, TokenIssuer

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TOKENS = TokenIssuer(new_key())
ADMIN = User("admin", groups=("system:masters",))
CERTIFICATE = {"subject": ((("organizationName", "dev"),), (("organizationName", "ops"),), (("commonName", "jane"),))}


Uids = dict[tuple[str, str, str], str]


def authenticator(uids: Uids | None = None, now: datetime = NOW) -> Authenticator:
    known = {("serviceaccounts", "ns", "sa"): "u-1"} if uids is None else uids
    static = StaticTokens({"admin-token": ADMIN})
    return Authenticator(static, TOKENS, lambda *key: known.get(key), lambda: now)


def ask(value: str, authenticator_: Authenticator | None = None) -> User:
    return (authenticator_ or authenticator()).authenticate([("accept", "*/*"), ("AUTHORIZATION", value)])


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer  ", "Basic YTpi", "Digest x", "admin-token"])
def test_what_is_no_bearer_token_is_anonymous(value: str) -> None:
    assert ask(value) == ANONYMOUS
    assert authenticator().authenticate([]) == ANONYMOUS


@pytest.mark.parametrize("value", ["Bearer admin-token", "bearer admin-token", "BEARER   admin-token "])
def test_a_fixed_token_is_its_owner(value: str) -> None:
    assert ask(value) == ADMIN


@pytest.mark.parametrize("token", ["x", "admin-token2", "a.b.c", "é", "\udcff", "x" * 100_000])
def test_a_wrong_token_is_refused_without_a_reason(token: str) -> None:
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        ask(f"Bearer {token}")


def test_a_service_account_is_who_its_token_says() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u-1")), NOW, HOUR, token_id="j")
    assert ask(f"Bearer {token}") == User(
        "system:serviceaccount:ns:sa",
        "u-1",
        ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        {"authentication.kubernetes.io/credential-id": ("JTI=j",)},
    )


def test_a_pods_token_says_where_the_pod_runs() -> None:
    binding = Binding("ns", Reference("sa", "u-1"), pod=Reference("p", "u-2"), node=Reference("n", "u-3"))
    token = TOKENS.issue(binding, NOW, HOUR, token_id="j")
    known = authenticator({("serviceaccounts", "ns", "sa"): "u-1", ("pods", "ns", "p"): "u-2"})
    prefix = "authentication.kubernetes.io"
    assert ask(f"Bearer {token}", known).extra == {
        f"{prefix}/credential-id": ("JTI=j",),
        f"{prefix}/pod-name": ("p",),
        f"{prefix}/pod-uid": ("u-2",),
        f"{prefix}/node-name": ("n",),
        f"{prefix}/node-uid": ("u-3",),
    }


ACCOUNT: Uids = {("serviceaccounts", "ns", "sa"): "u-1"}


@pytest.mark.parametrize(
    ("binding", "uids"),
    [
        (Binding("ns", Reference("sa", "u-1")), {}),
        (Binding("ns", Reference("sa", "u-1")), {("serviceaccounts", "ns", "sa"): "u-9"}),
        (Binding("ns", Reference("sa")), {("serviceaccounts", "ns", "sa"): ""}),
        (Binding("ns", Reference("sa", "u-1"), pod=Reference("p", "u-2")), ACCOUNT),
        (Binding("ns", Reference("sa", "u-1"), pod=Reference("p", "u-2")), ACCOUNT | {("pods", "ns", "p"): "u-9"}),
        (Binding("ns", Reference("sa", "u-1"), secret=Reference("s", "u-2")), ACCOUNT),
        (Binding("ns", Reference("sa", "u-1"), node=Reference("n", "u-3")), ACCOUNT),
    ],
)
def test_a_token_ends_with_what_it_is_bound_to(binding: Binding, uids: Uids) -> None:
    token = TOKENS.issue(binding, NOW, HOUR)
    with pytest.raises(Unauthorized):
        ask(f"Bearer {token}", authenticator(uids))


def test_a_token_that_only_names_a_node_survives_the_node_object() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u-1"), node=Reference("n")), NOW, HOUR)
    assert ask(f"Bearer {token}").extra["authentication.kubernetes.io/node-name"] == ("n",)


def test_an_expired_token_and_one_for_somebody_else_are_refused() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u-1")), NOW, HOUR)
    with pytest.raises(Unauthorized):
        ask(f"Bearer {token}", authenticator(now=NOW + 2 * HOUR))
    other = TOKENS.issue(Binding("ns", Reference("sa", "u-1")), NOW, HOUR, ("vault",))
    with pytest.raises(Unauthorized):
        ask(f"Bearer {other}")


def test_the_audiences_for_which_a_token_is_good_are_told() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u-1")), NOW, HOUR, ("vault", "x", ISSUER))
    assert authenticator().token_user(token, ("y", "x", "vault"))[1] == ("x", "vault")
    assert authenticator().token_user("admin-token")[1] == (ISSUER,)
    with pytest.raises(Unauthorized):
        authenticator().token_user("admin-token", ("vault",))


def test_a_certificate_says_name_and_groups() -> None:
    assert certificate_user(CERTIFICATE) == User("jane", groups=("dev", "ops", "system:authenticated"))
    assert certificate_user({"subject": ((("organizationName", "dev"),),)}) is None
    assert certificate_user({}) is None


def test_a_certificate_counts_before_a_token() -> None:
    headers = [("Authorization", "Bearer wrong")]
    assert authenticator().authenticate(headers, CERTIFICATE).name == "jane"
    with pytest.raises(Unauthorized):
        authenticator().authenticate(headers, {})


def test_the_owner_of_the_socket_and_root_are_administrators() -> None:
    assert peer_user(1000, 1000).groups[0] == "system:masters"
    assert peer_user(0, 1000).groups[0] == "system:masters"
    with pytest.raises(Forbidden, match="user 65534 may not use this socket, it is for user 1000 and root"):
        peer_user(65534, 1000)


CONNECT = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
"""


def connect_as(uid: int, path: Path) -> int:
    """The uid that the server sees."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        path.chmod(0o777)
        server.listen()
        server.settimeout(60)
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", CONNECT, str(path), str(uid)]):
            connection, _ = server.accept()
            with connection:
                return peer_uid(connection)


def test_the_kernel_says_who_is_at_the_other_end(root: Path) -> None:
    assert connect_as(os.geteuid(), root / "s") == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_is_seen_as_such(root: Path) -> None:
    root.chmod(0o755)
    assert connect_as(65534, root / "s") == 65534
