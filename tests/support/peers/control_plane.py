"""A real Kubernetes control plane on loopback: etcd and kube-apiserver, on request kube-scheduler and
kube-controller-manager, from binaries that `make peers` builds (or any of the same version).

    async with control_plane(Path(".cache/peers/bin"), root) as cp:
        await cp.kubectl("get", "deviceclasses")
        await cp.kill("kube-apiserver")
        await cp.start("kube-apiserver")  # on the same port

There is no kubelet: a pod that was scheduled stays Pending until something reports its status. Without the
controller manager nothing creates service accounts, so their admission check is switched off then.
"""

import csv
import io
import json
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from devlet.errors import InvalidInput
from devlet.kit.processes import SHORT_GRACE, Ready, RunningProcess, process
from devlet.testing.embedded import ADMIN, kubectl
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import DEADLINE
from tests.support.free_ports import LOOPBACK, free_ports
from tests.support.peers.health import answers
from tests.support.peers.kube_programs import (
    CONTROLLERS,
    FEATURE_GATES,
    kube_controller_manager,
    kube_scheduler,
    switches,
)

__all__ = ["ADMIN", "CONTROLLERS", "FEATURE_GATES", "RUNTIME_CONFIG", "ControlPlane", "control_plane"]

Make = Callable[[], AbstractAsyncContextManager[RunningProcess]]

RUNTIME_CONFIG: Mapping[str, bool] = MappingProxyType(
    {f"resource.k8s.io/{version}": True for version in ("v1beta1", "v1beta2", "v1alpha3")}
)
_PROGRAMS = ("etcd", "kube-apiserver", "kubectl")


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane."""

    endpoint: str
    etcd_endpoint: str
    ca_file: Path
    root: Path
    tokens: Mapping[str, str] = field(repr=False)
    _lives: Mapping[str, Restarts[RunningProcess]] = field(repr=False)
    _kubectl: Path = field(repr=False)

    @property
    def programs(self) -> dict[str, RunningProcess]:
        """Its processes by name, as in `programs["etcd"].pid`: those of the last start, which may have ended."""
        return {name: life.running for name, life in self._lives.items()}

    @property
    def token(self) -> str:
        """The administrator's, of group system:masters."""
        return self.tokens[ADMIN]

    @property
    def kubeconfig(self) -> Path:
        return self.kubeconfig_of(ADMIN)

    @property
    def pids(self) -> dict[str, int]:
        return {name: program.pid for name, program in self.programs.items()}

    async def kill(self, program: str) -> None:
        """With SIGKILL, and until it is gone."""
        await self._lives[program].kill()

    async def stop(self, program: str) -> None:
        """In good order, and until it is gone."""
        await self._lives[program].stop()

    async def start(self, program: str) -> None:
        """One that was killed or stopped, with the flags it had, until it is ready. The API server and etcd keep their
        ports, so that clients find them again."""
        await self._lives[program].start()

    async def restart(self, program: str) -> None:
        """Kill it and start it again."""
        await self.kill(program)
        await self.start(program)

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of the administrator, or of one of the `users` the control plane was started with."""
        if user not in self.tokens:
            raise InvalidInput(f"user {user}: the control plane was started with {', '.join(sorted(self.tokens))}")
        return _kubeconfig_path(self.root, user)

    async def kubectl(self, *arguments: str, stdin: str = "", user: str = ADMIN) -> subprocess.CompletedProcess[str]:
        """Run kubectl to its end, whatever its exit code. `stdin` is for `-f -`."""
        return await kubectl(self._kubectl, self.kubeconfig_of(user), self.root, *arguments, stdin=stdin)


@asynccontextmanager
async def control_plane(
    binaries: Path,
    root: Path,
    *,
    scheduler: bool = False,
    controller_manager: bool = False,
    runtime_config: Mapping[str, bool] = RUNTIME_CONFIG,
    feature_gates: Mapping[str, bool] = FEATURE_GATES,
    users: Mapping[str, Sequence[str]] = MappingProxyType({}),
    api_flags: Sequence[str] = (),
    fsync: bool = True,
    timeout: float = DEADLINE,
) -> AsyncIterator[ControlPlane]:
    """Start it and yield when every part reports ready and the default namespace exists.

    All state, credentials and logs go below `root`; the same root again continues with the same objects, on other
    ports. `users` maps more user names to their groups (`{"system:node:n1": ["system:nodes"]}`); each gets a token
    and a kubeconfig and what RBAC and the Node authorizer allow. `api_flags` are more of kube-apiserver.
    `fsync=False` makes etcd faster and a crash of the machine lossy. `timeout` is for each program."""
    optional = {"kube-scheduler": scheduler, "kube-controller-manager": controller_manager}
    _check_binaries(binaries, [*_PROGRAMS, *(name for name, wanted in optional.items() if wanted)])
    root = _make_folders(root)
    tokens = {user: secrets.token_hex(16) for user in (ADMIN, *users)}
    _write_secrets(root, tokens, {ADMIN: ["system:masters"], **users})
    client_port, peer_port, api_port = free_ports(3)
    endpoint, etcd_endpoint = f"https://{LOOPBACK}:{api_port}", f"http://{LOOPBACK}:{client_port}"
    ca_file = root / "certs" / "apiserver.crt"
    for user, token in tokens.items():
        _write_private(_kubeconfig_path(root, user), _kubeconfig(endpoint, ca_file, user, token))

    flags = [*_api_server_flags(root, api_port, etcd_endpoint, runtime_config, feature_gates), *api_flags]
    if not controller_manager:
        flags.append("--disable-admission-plugins=ServiceAccount")
    urls = [endpoint + path for path in ("/readyz", "/api/v1/namespaces/default")]
    admin = _kubeconfig_path(root, ADMIN)

    def program(name: str, flags: list[str], ready: Ready) -> Make:
        argv: list[str | Path] = [binaries / name, *flags]
        return partial(process, argv, log=root / f"{name}.log", ready=ready, timeout=timeout, grace=SHORT_GRACE)

    makes = {
        "etcd": program("etcd", _etcd_flags(root, client_port, peer_port, fsync), answers(f"{etcd_endpoint}/readyz")),
        "kube-apiserver": program("kube-apiserver", flags, answers(*urls, ca_file=ca_file, token=tokens[ADMIN])),
    }
    if scheduler:
        makes["kube-scheduler"] = partial(
            kube_scheduler, binaries, root, admin, feature_gates=feature_gates, timeout=timeout
        )
    if controller_manager:
        makes["kube-controller-manager"] = partial(
            kube_controller_manager,
            binaries,
            root,
            admin,
            service_account_key=root / "service-accounts.key",
            root_ca=ca_file,
            feature_gates=feature_gates,
            timeout=timeout,
        )
    lives = {name: Restarts(make) for name, make in makes.items()}
    async with AsyncExitStack() as stack:
        for life in lives.values():
            await stack.enter_async_context(life)
        yield ControlPlane(endpoint, etcd_endpoint, ca_file, root, tokens, lives, binaries / "kubectl")


def _check_binaries(binaries: Path, names: Sequence[str]) -> None:
    if missing := [name for name in names if not shutil.which(binaries / name)]:
        raise InvalidInput(f"{binaries} has no {', '.join(missing)}: run `make peers`")


def _make_folders(root: Path) -> Path:
    for folder in (root, root / "etcd", root / "certs"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return root.absolute()


def _write_secrets(root: Path, tokens: Mapping[str, str], groups: Mapping[str, Sequence[str]]) -> None:
    rows = io.StringIO()
    csv.writer(rows).writerows([token, user, user, ",".join(groups[user])] for user, token in tokens.items())
    _write_private(root / "tokens.csv", rows.getvalue())
    if not (root / "service-accounts.key").exists():
        _write_private(root / "service-accounts.key", _private_key())


def _private_key() -> str:
    # Here, because everything else in this module works without the package.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    return (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        .decode()
    )


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _kubeconfig_path(root: Path, user: str) -> Path:
    return root / ("kubeconfig" if user == ADMIN else f"{user.replace('/', '_').replace(':', '_')}.kubeconfig")


def _kubeconfig(endpoint: str, ca_file: Path, user: str, token: str) -> str:
    cluster = {"server": endpoint, "certificate-authority": str(ca_file.absolute())}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "peers", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "peers", "context": {"cluster": "peers", "user": user}}],
        "current-context": "peers",
    }
    return json.dumps(document, indent=2)  # JSON is YAML


def _etcd_flags(root: Path, client_port: int, peer_port: int, fsync: bool) -> list[str]:
    client, peer = f"http://{LOOPBACK}:{client_port}", f"http://{LOOPBACK}:{peer_port}"
    return [
        "--name=peers",
        f"--data-dir={root / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=peers={peer}",
        "--log-level=warn",
        *([] if fsync else ["--unsafe-no-fsync"]),
    ]


def _api_server_flags(
    root: Path, port: int, etcd_endpoint: str, runtime_config: Mapping[str, bool], feature_gates: Mapping[str, bool]
) -> list[str]:
    key = root / "service-accounts.key"
    return [
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--etcd-servers={etcd_endpoint}",
        f"--cert-dir={root / 'certs'}",
        f"--token-auth-file={root / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={key}",
        f"--service-account-key-file={key}",
        "--service-cluster-ip-range=10.96.0.0/24",
        "--allow-privileged=true",
        # Nothing reaches the API through its service here, and a loopback endpoint is refused anyway.
        "--endpoint-reconciler-type=none",
        *switches("--runtime-config", runtime_config),
        *switches("--feature-gates", feature_gates),
    ]
