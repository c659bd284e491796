from datetime import UTC, datetime, timedelta

import pytest

from devlet.auth.authentication import Authenticator, Unauthorized, certificate_user, peer_user
from devlet.auth.certificates import new_key
from devlet.auth.tokens import ISSUER, Binding, Reference, StaticTokens, TokenIssuer
from devlet.auth.users import ANONYMOUS, User
from devlet.errors import Forbidden

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


def ask(token: str, authenticator_: Authenticator | None = None) -> User:
    return (authenticator_ or authenticator()).authenticate(token)


def test_a_request_without_credentials_is_anonymous() -> None:
    assert ask("") == ANONYMOUS
    assert authenticator().authenticate("", {}) == ANONYMOUS


def test_a_fixed_token_identifies_its_owner() -> None:
    assert ask("admin-token") == ADMIN


@pytest.mark.parametrize("token", ["x", "admin-token2", "a.b.c", "é", "\udcff", "x" * 100_000])
def test_a_wrong_token_is_refused_without_a_reason(token: str) -> None:
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        ask(token)


def test_a_token_identifies_its_service_account() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u-1")), NOW, HOUR, token_id="j")
    assert ask(token) == User(
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
    assert ask(token, known).extra == {
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
def test_a_token_becomes_invalid_with_the_object_it_is_bound_to(binding: Binding, uids: Uids) -> None:
    token = TOKENS.issue(binding, NOW, HOUR)
    with pytest.raises(Unauthorized):
        ask(token, authenticator(uids))


def test_a_token_that_only_names_a_node_outlives_the_node_object() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u-1"), node=Reference("n")), NOW, HOUR)
    assert ask(token).extra["authentication.kubernetes.io/node-name"] == ("n",)


def test_an_expired_token_and_a_token_for_another_audience_are_refused() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u-1")), NOW, HOUR)
    with pytest.raises(Unauthorized):
        ask(token, authenticator(now=NOW + 2 * HOUR))
    other = TOKENS.issue(Binding("ns", Reference("sa", "u-1")), NOW, HOUR, ("vault",))
    with pytest.raises(Unauthorized):
        ask(other)


def test_a_token_is_valid_for_those_of_the_wanted_audiences_that_it_names() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u-1")), NOW, HOUR, ("vault", "x", ISSUER))
    assert authenticator().token_user(token, ("y", "x", "vault"))[1] == ("x", "vault")
    assert authenticator().token_user("admin-token")[1] == (ISSUER,)
    with pytest.raises(Unauthorized):
        authenticator().token_user("admin-token", ("vault",))


def test_a_certificate_names_the_user_and_the_groups() -> None:
    assert certificate_user(CERTIFICATE) == User("jane", groups=("dev", "ops", "system:authenticated"))
    assert certificate_user({"subject": ((("organizationName", "dev"),),)}) is None
    assert certificate_user({}) is None


def test_a_certificate_takes_precedence_over_a_token() -> None:
    assert authenticator().authenticate("wrong", CERTIFICATE).name == "jane"
    with pytest.raises(Unauthorized):
        authenticator().authenticate("wrong", {})


def test_the_owner_of_the_socket_and_root_are_administrators() -> None:
    assert peer_user(1000, 1000).groups[0] == "system:masters"
    assert peer_user(0, 1000).groups[0] == "system:masters"
    with pytest.raises(Forbidden, match="user 65534 may not use this socket, it is for user 1000 and root"):
        peer_user(65534, 1000)
