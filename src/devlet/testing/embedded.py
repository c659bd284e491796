"""devlet itself as a server for tests: `devlet up` in a process of its own, with what `ControlPlane` offers.

    async with embedded_api(root, binaries=Path(".cache/peers/bin")) as api:
        await api.kubectl("get", "deviceclasses")

The same root again continues with the same objects, on the same port and with the same credentials. `root` has to be
short, because sockets go below it (`tempfile.mkdtemp(prefix="dv")`). With `--kubeconfig` among its arguments it is a
node of that cluster, and endpoint, credentials and kubectl are that cluster's.
"""

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import anyio

from devlet.auth import kubeconfigs
from devlet.errors import InvalidInput
from devlet.kit.processes import Ready, RunningProcess, Start, process
from devlet.testing import warm_start
from devlet.testing.waiting import DEADLINE

__all__ = ["ADMIN", "EmbeddedApi", "embedded_api", "kubectl"]

ADMIN = "admin"  # the user whose kubeconfig is that of the whole cluster
READY_LINE = "devlet is ready: "


@dataclass(frozen=True, slots=True)
class EmbeddedApi:
    """A running `devlet up`."""

    endpoint: str
    ca_file: Path
    root: Path
    token: str = field(repr=False)
    program: RunningProcess
    _kubeconfig: Path = field(repr=False)
    _kubectl: Path = field(repr=False)

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator, in the group system:masters."""
        return self.kubeconfig_of(ADMIN)

    @property
    def pid(self) -> int:
        return self.program.pid

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of the administrator, or of a driver for which `devlet token driver` made one."""
        path = self._kubeconfig if user == ADMIN else self.root / f"drivers/{user}.kubeconfig"
        if not path.is_file():
            raise InvalidInput(f"user {user}: there is no {path}")
        return path

    async def kubectl(self, *arguments: str, stdin: str = "", user: str = ADMIN) -> subprocess.CompletedProcess[str]:
        """Run kubectl to its end, whatever its exit code. `stdin` is for `-f -`."""
        return await kubectl(self._kubectl, self.kubeconfig_of(user), self.root, *arguments, stdin=stdin)


async def kubectl(
    program: Path, kubeconfig: Path, home: Path, *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run kubectl to its end, whatever its exit code. Nothing of the caller's environment reaches it."""
    command = [str(program), "--kubeconfig", str(kubeconfig), *arguments]
    environment = {"HOME": str(home), "KUBECACHEDIR": str(home / "kubectl-cache")}
    answer = await anyio.run_process(command, input=stdin.encode(), env=environment, check=False)
    return subprocess.CompletedProcess(command, answer.returncode, answer.stdout.decode(), answer.stderr.decode())


@asynccontextmanager
async def embedded_api(
    root: Path,
    *,
    binaries: Path | None = None,
    arguments: Sequence[str] = (),
    control: bool = False,
    timeout: float = DEADLINE,
    start: Start = warm_start.start,
) -> AsyncIterator[EmbeddedApi]:
    """Run `devlet up`, and yield when it is ready.

    `arguments` are further flags. `binaries` is the directory of kubectl, which is otherwise looked up on the PATH when
    it is used. Without `control` no scheduler and no controllers run, unless real ones do. The process is forked by
    default; use `spawn` for `start` if the time of the start matters."""
    root = _make_folder(root)
    log = root / "up.log"
    argv = [sys.executable, "-m", "devlet", "up", "--root", str(root), *arguments]
    argv += [] if control else ["--no-control"]
    async with process(argv, log=log, name="devlet up", ready=_says_so(log), timeout=timeout, start=start) as program:
        path = _kubeconfig(root, arguments)
        config = kubeconfigs.read(path)
        cluster = config["clusters"][0]["cluster"]
        yield EmbeddedApi(
            endpoint=cluster["server"],
            ca_file=Path(cluster.get("certificate-authority", root / "pki" / "ca.crt")),
            root=root,
            token=config["users"][0]["user"].get("token", ""),
            program=program,
            _kubeconfig=path,
            _kubectl=(binaries / "kubectl") if binaries else Path("kubectl"),
        )


def _kubeconfig(root: Path, arguments: Sequence[str]) -> Path:
    for flag, value in pairwise(arguments):
        if flag == "--kubeconfig":
            return Path(value)
    return root / "kubeconfig"


def _make_folder(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    return root.absolute()


def _says_so(log: Path) -> Ready:
    """Ready when the log gets this line. A line of an earlier run does not count."""
    before = log.stat().st_size if log.exists() else 0

    async def seen(_: RunningProcess) -> bool:
        return READY_LINE.encode() in (await anyio.Path(log).read_bytes())[before:]

    return seen
