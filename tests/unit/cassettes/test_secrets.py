import pytest

from devlet.cassettes.secrets import REDACTED, is_secret, redacted, redacted_args, redacted_env, without_claims
from devlet.runtime.cdi.spec import ContainerEdits


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_TOKEN", "x"),
        *((name, "x") for name in ("AUTHTOKEN", "accessToken", "HF_TOKENS", "CLIENTSECRET", "example.com/credentials")),
        *((name, "x") for name in ("DBPASSWORD", "DB_PASS", "dbPass", "licensePassWord", "NGC_API_KEY", "APIKEY")),
        *((name, "x") for name in ("LICENSE_KEY", "SSH_KEY", "ENCRYPTION_KEY", "KEY", "KEYS_OLD", "sshKey", "HTTPKey")),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AUTHORISATION", "Bearer abcdefghijklmnopqrst"),
        ("ID", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0000.abc"),
        ("SERVER", "https://user:pass@example.com/"),
        ("CERT", "-----BEGIN RSA PRIVATE KEY-----\nMIIE"),
    ],
)
def test_what_looks_like_credentials_is_one(name: str, value: str) -> None:
    assert is_secret(name, value)
    assert redacted({name: value}) == {name: REDACTED}
    assert list(redacted_env([f"{name}={value}"])) == [f"{name}={REDACTED}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NVIDIA_VISIBLE_DEVICES", "GPU-1"),
        ("TOKENIZERS_PARALLELISM", "1"),
        ("URL", "http://example.com/a"),
        ("KEYBOARD_MONKEY", "1"),
        ("PCI_PASSTHROUGH", "1"),
    ],
)
def test_what_a_device_needs_is_none(name: str, value: str) -> None:
    assert redacted({name: value}) == {name: value}
    assert list(redacted_env([f"{name}={value}", "BARE"])) == [f"{name}={value}", "BARE"]


def test_arguments_have_credentials_behind_their_options() -> None:
    given = ["hook", "--token=x", "--ssh-key", "y", "--keys", "--id", "3", "--secret"]
    told = ["hook", "--token=redacted", "--ssh-key", "redacted", "--keys", "--id", "3", "--secret"]
    assert list(redacted_args(given)) == told
    assert list(redacted_args(["https://user:pass@example.com/", "a=b"])) == [REDACTED, "a=b"]


def test_uids_of_claims_become_placeholders() -> None:
    uid = "6b1c2f9e-0000-4000-8000-000000000001"
    edits = ContainerEdits(env=(f"DIR=/run/{uid}/x",))
    assert without_claims(edits, [uid]) == ContainerEdits(env=("DIR=/run/{claim.uid}/x",))
    assert without_claims(edits, []) is edits
    assert without_claims(edits, ["x"]) is edits
