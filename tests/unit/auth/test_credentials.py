import shutil
import ssl
import stat
import subprocess
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import anyio
import pytest
import yaml
from aiohttp import web

from devlet.auth import certificates
from devlet.auth.authentication import Authenticator
from devlet.auth.credentials import Credentials, open_credentials
from devlet.auth.service_accounts import DRIVER_NAMESPACE, NODE_NAME, driver_account, driver_of
from devlet.auth.users import ADMINISTRATOR, User
from devlet.errors import InvalidInput, StateCorrupt
from devlet.objects.documents import Document
from devlet.serve.kube_api.gate import bearer_token

NAMES = certificates.server_names()
NOW = datetime.now(UTC)
SERVER = "https://127.0.0.1:6443"
DRIVER = "gpu.example.com"
ACCOUNT: Document = {"metadata": {"name": driver_account(DRIVER), "namespace": DRIVER_NAMESPACE, "uid": "u-1"}}
KUBECTL = Path(__file__).parents[3] / ".cache" / "peers" / "bin" / "kubectl"


@pytest.fixture
def credentials(tmp_path: Path) -> Credentials:
    return open_credentials(tmp_path, NAMES, NOW)


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def write_all(credentials: Credentials, now: datetime, server: str = SERVER) -> None:
    credentials.write_kubeconfig(server)
    credentials.write_driver_kubeconfig(DRIVER, "n1", ACCOUNT, server, now)
    credentials.write_in_cluster(ACCOUNT, "n1", server, now)


def authenticator(credentials: Credentials, uid: str = "u-1") -> Authenticator:
    return Authenticator(credentials.static_tokens(), credentials.tokens, lambda *_: uid, lambda: NOW)


def test_all_files_are_in_place_and_other_users_can_read_only_certificates(
    credentials: Credentials,
) -> None:
    write_all(credentials, NOW)
    modes = {name: stat.S_IMODE((credentials.root / name).stat().st_mode) for name in files(credentials.root)}
    assert modes.pop("pki/ca.crt") == 0o644
    assert modes == {
        "drivers/gpu.example.com.kubeconfig": 0o600,
        "in-cluster/ca.crt": 0o600,
        "in-cluster/namespace": 0o600,
        "in-cluster/token": 0o600,
        "kubeconfig": 0o600,
        "pki/admin.token": 0o600,
        "pki/ca.key": 0o600,
        "pki/server.pem": 0o600,
        "pki/service-accounts.key": 0o600,
    }
    folders = [credentials.root / name for name in ("pki", "drivers", "in-cluster")]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3


def test_a_restart_changes_nothing(credentials: Credentials) -> None:
    write_all(credentials, NOW)
    before = files(credentials.root)
    later = NOW + timedelta(days=200)
    again = open_credentials(credentials.root, NAMES, later)
    write_all(again, later)
    assert files(credentials.root) == before
    assert again.admin_token == credentials.admin_token


def test_another_port_changes_the_address_but_no_token(credentials: Credentials) -> None:
    write_all(credentials, NOW)
    before = yaml.safe_load((credentials.root / "kubeconfig").read_bytes())
    write_all(credentials, NOW, "https://127.0.0.1:7777")
    after = yaml.safe_load((credentials.root / "kubeconfig").read_bytes())
    assert after["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:7777"
    assert after["users"] == before["users"]


def test_the_administrators_token_identifies_the_administrator(credentials: Credentials) -> None:
    assert authenticator(credentials).authenticate(credentials.admin_token) == ADMINISTRATOR
    assert "system:masters" in ADMINISTRATOR.groups
    assert credentials.admin_token not in repr(credentials)


def driver_user(credentials: Credentials, path: Path) -> User:
    token = yaml.safe_load(path.read_bytes())["users"][0]["user"]["token"]
    return authenticator(credentials).authenticate(token)


def test_a_drivers_token_names_the_driver_and_the_node(credentials: Credentials) -> None:
    path = credentials.write_driver_kubeconfig(DRIVER, "n1", ACCOUNT, SERVER, NOW)
    user = driver_user(credentials, path)
    assert driver_of(user) == DRIVER
    assert user.extra[NODE_NAME] == ("n1",)
    assert user.uid == "u-1"


def test_a_driver_gets_another_token_for_another_node_or_a_new_account(credentials: Credentials) -> None:
    def token(node: str, account: Document, now: datetime = NOW) -> str:
        path = credentials.write_driver_kubeconfig(DRIVER, node, account, SERVER, now)
        return str(yaml.safe_load(path.read_bytes())["users"][0]["user"]["token"])

    recreated = {"metadata": ACCOUNT["metadata"] | {"uid": "u-2"}}
    first = token("n1", ACCOUNT)
    assert token("n1", ACCOUNT) == first
    changed = [token("n2", ACCOUNT), token("n2", recreated), token("n2", recreated, NOW + timedelta(days=3600))]
    assert len({first, *changed}) == 4


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", ".", "x" * 64])
def test_an_invalid_driver_name_creates_no_file(credentials: Credentials, name: str) -> None:
    with pytest.raises(InvalidInput, match="driver"):
        credentials.write_driver_kubeconfig(name, "n1", ACCOUNT, SERVER, NOW)
    assert not (credentials.root / "drivers").exists()


@pytest.mark.parametrize("name", ["", "../x", "A", "n" * 60])
def test_a_node_name_that_no_certificate_can_hold_is_refused(credentials: Credentials, name: str) -> None:
    with pytest.raises(InvalidInput):
        credentials.node_kubeconfig(name, SERVER, NOW)


def test_plain_http_is_refused_because_clients_would_send_no_token(credentials: Credentials) -> None:
    with pytest.raises(InvalidInput, match="must be an https:// URL"):
        credentials.write_kubeconfig("http://127.0.0.1:80")


def test_a_program_in_a_pod_finds_its_token_authority_and_namespace(credentials: Credentials) -> None:
    found = credentials.write_in_cluster(ACCOUNT, "n1", "https://[::1]:6443", NOW)
    assert found.environment == {"KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert (found.directory / "namespace").read_text() == "kube-system"
    assert (found.directory / "ca.crt").read_bytes() == credentials.authority_pem
    token = (found.directory / "token").read_text()
    assert driver_of(authenticator(credentials).authenticate(token)) == DRIVER
    elsewhere = credentials.write_in_cluster(ACCOUNT, "", SERVER, NOW, credentials.root / "other")
    assert elsewhere.directory == credentials.root / "other"


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40, b"a b" * 20])
def test_a_damaged_token_file_is_refused_and_left_alone(credentials: Credentials, content: bytes) -> None:
    file = credentials.root / "pki" / "admin.token"
    file.write_bytes(content)
    with pytest.raises(StateCorrupt, match=r"admin\.token does not contain a token"):
        open_credentials(credentials.root, NAMES, NOW)
    assert file.read_bytes() == content


def test_a_token_file_that_other_users_may_read_is_refused(credentials: Credentials) -> None:
    (credentials.root / "pki" / "admin.token").chmod(0o644)
    with pytest.raises(StateCorrupt, match="chmod 600"):
        open_credentials(credentials.root, NAMES, NOW)


@asynccontextmanager
async def api(credentials: Credentials) -> AsyncIterator[str]:
    """A server that answers every request with the user who asks."""

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert")
        user = authenticator(credentials).authenticate(bearer_token(request.headers.items()), certificate)
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": "36", "gitVersion": "v1.36.4"})
        return web.json_response({"name": user.name, "groups": user.groups})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificates.server_context(credentials.pki))
        await site.start()
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.anyio
async def test_a_node_joins_with_its_kubeconfig(credentials: Credentials) -> None:
    async with api(credentials) as server:
        config = yaml.safe_load(credentials.node_kubeconfig("n2", server, NOW))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        file = credentials.root / "joined.pem"
        file.write_bytes(b64decode(user["client-key-data"]) + b64decode(user["client-certificate-data"]))
        context.load_cert_chain(file)
        async with aiohttp.ClientSession() as session, session.get(cluster["server"], ssl=context) as reply:
            said = await reply.json()
    assert said == {"name": "system:node:n2", "groups": ["system:nodes", "system:authenticated"]}


@pytest.mark.anyio
async def test_a_client_without_credentials_is_anonymous(credentials: Credentials) -> None:
    context = ssl.create_default_context(cadata=credentials.authority_pem.decode())
    async with api(credentials) as server, aiohttp.ClientSession() as session:
        async with session.get(server, ssl=context) as reply:
            assert (await reply.json())["name"] == "system:anonymous"


async def run_kubectl(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [str(KUBECTL), "--kubeconfig", str(kubeconfig), *arguments]
    return await anyio.run_process(command, env={"HOME": str(kubeconfig.parent)}, check=False)


@pytest.mark.peers
@pytest.mark.anyio
@pytest.mark.skipif(not shutil.which(KUBECTL), reason="kubectl not built: run `make peers`")
async def test_kubectl_accepts_every_kubeconfig(credentials: Credentials) -> None:
    async with api(credentials) as server:
        node = credentials.root / "node.kubeconfig"
        node.write_text(credentials.node_kubeconfig("n1", server, NOW))
        expected = {
            credentials.write_kubeconfig(server): "admin",
            credentials.write_driver_kubeconfig(DRIVER, "n1", ACCOUNT, server, NOW): (
                "system:serviceaccount:kube-system:devlet-driver-gpu.example.com"
            ),
            node: "system:node:n1",
        }
        for kubeconfig, user in expected.items():
            version = await run_kubectl(kubeconfig, "version")
            assert (version.returncode, b"Server Version: v1.36.4" in version.stdout) == (0, True), version.stderr
            who = await run_kubectl(kubeconfig, "get", "--raw", "/who")
            assert yaml.safe_load(who.stdout)["name"] == user
