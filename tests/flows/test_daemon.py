"""The daemon as a real process: ready, one per root, stopped by signals, killed and started again."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from devlet.cluster.store.store import open_store
from devlet.objects.kinds import NAMESPACES

_DEADLINE = 60.0
DIRECTORIES = ("device-plugins", "plugins_registry", "plugins", "pod-resources", "cdi")


class Daemon:
    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def line(self) -> str:
        """The next line of its standard output; empty if it ended. The first one says that it is ready."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], _DEADLINE)
        assert readable, f"not ready after {_DEADLINE} s: {self.log}"
        return self.process.stdout.readline()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(_DEADLINE)


@contextmanager
def daemon(*arguments: str | Path, **environ: str) -> Iterator[Daemon]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEVLET_", "NOTIFY_", "WATCHDOG_", "NODE_NAME"))}
    with tempfile.NamedTemporaryFile() as log, tempfile.NamedTemporaryFile("w") as config:
        # By default a daemon that takes longer than 2 s to stop exits with 1, as it may on a busy machine.
        config.write("apiVersion: devlet.dev/v1alpha1\nkind: Configuration\ntimeouts:\n  stop: 60s\n")
        config.flush()
        process = subprocess.Popen(
            [sys.executable, "-m", "devlet", "up", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**kept, "DEVLET_CONFIG": config.name, **environ},
        )
        with process:
            try:
                yield Daemon(process, Path(log.name))
            finally:
                process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_the_daemon_becomes_ready_and_a_signal_stops_it_cleanly(root: Path, number: signal.Signals) -> None:
    with daemon("--root", root, "--node-name", "n1") as node:
        assert node.line() == f"devlet is ready: node n1, root {root}\n"
        assert node.stop(number) == 0
        assert [re.sub(r".*\] ", "", line).split(" ", 1)[0] for line in node.log.splitlines()][-1] == '"stopped"'


def test_a_second_daemon_on_the_same_root_is_refused_and_names_the_pid_of_the_first(root: Path) -> None:
    with daemon("--root", root) as first:
        assert first.line()
        with daemon("--root", root) as second:
            assert second.process.wait(_DEADLINE) == 1
            pid = first.process.pid
            assert second.log == f"error: {root} is in use by process {pid}, which holds {root}/devlet.lock\n"
        assert first.stop() == 0


async def create_namespace(root: Path) -> None:
    async with open_store(root / "cluster.db") as store:
        await store.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})


async def namespaces(root: Path) -> set[str]:
    async with open_store(root / "cluster.db") as store:
        return {item["metadata"]["name"] for item in (await store.list(NAMESPACES)).items}


@pytest.mark.long
def test_nothing_is_lost_after_kill_9(root: Path) -> None:
    anyio.run(create_namespace, root)
    with daemon("--root", root) as node:
        assert node.line()
        node.process.kill()
        assert node.process.wait(_DEADLINE) == -signal.SIGKILL
    with daemon("--root", root) as node:
        assert node.line()
        assert node.stop() == 0
    assert "mine" in anyio.run(namespaces, root)


def test_systemd_is_notified_of_ready_alive_and_stopping(root: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(root / "notify"))
        manager.settimeout(_DEADLINE)
        environ = {"NOTIFY_SOCKET": str(root / "notify"), "WATCHDOG_USEC": "20000"}
        with daemon("--root", root / "r", **environ) as node:
            messages = {manager.recv(100)}
            while messages != {b"READY=1", b"WATCHDOG=1"}:
                messages.add(manager.recv(100))
            assert node.line()
            node.process.send_signal(signal.SIGTERM)
            while b"STOPPING=1" not in messages:
                messages.add(manager.recv(100))
            assert node.process.wait(_DEADLINE) == 0
    assert messages == {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"}


_HANGING = """
import sys
from contextlib import asynccontextmanager
from pathlib import Path
import anyio
from devlet.daemon.config import Config
from devlet.daemon.main import run

@asynccontextmanager
async def parts(config):
    yield
    print("stopping", flush=True)
    await anyio.sleep_forever()

config = Config(Path(sys.argv[1]), "n", stop_timeout=3600)
anyio.run(lambda: run(config, parts, on_ready=lambda: print("ready", flush=True)))
"""


@pytest.mark.parametrize("second", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_second_signal_stops_the_daemon_at_once(root: Path, second: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", _HANGING, str(root)], stdout=subprocess.PIPE, text=True) as process:
        node = Daemon(process, root)
        assert node.line() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert node.line() == "stopping\n"
        assert node.stop(second) == -second


def test_json_logs_are_one_object_per_line(root: Path) -> None:
    with daemon("--root", root, "--log-format", "json", "-v", "2") as node:
        assert node.line()
        assert node.stop() == 0
        lines = [json.loads(line) for line in node.log.splitlines()]
    messages = [line["msg"] for line in lines]
    assert messages.index("store opened") < messages.index("ready") < messages.index("stopped")
    assert all(line["ts"] > 0 and line["level"] for line in lines)


def test_text_logs_have_the_shape_of_klog(root: Path) -> None:
    with daemon("--root", root) as node:
        assert node.line()
        pid = node.process.pid
        assert node.stop() == 0
        assert node.log
        for line in node.log.splitlines():
            assert re.fullmatch(rf'I\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} +{pid} \w+\.py:\d+\] "[a-z ]+".*', line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Configuration\nrot: /x\n", ':3: unknown key "rot"; did you mean "root"?'),
        ("kind: Configuration\nverbosity: high\n", ":3: verbosity: 'high' is not a verbosity"),
        ("kind: [\n", ":3: not valid YAML"),
        ("kind: Pod\n", ":2: kind is 'Pod'; expected Configuration"),
    ],
)
def test_a_bad_configuration_file_is_named_with_line_and_key(root: Path, text: str, message: str) -> None:
    file = root / "config.yaml"
    file.write_text("apiVersion: devlet.dev/v1alpha1\n" + text)
    with daemon("--config", file) as node:
        assert node.process.wait(_DEADLINE) == 1
        assert node.log.startswith(f"error: {file}{message}")
        assert len(node.log.splitlines()) == 1


def test_a_damaged_database_is_reported_and_left_alone(root: Path) -> None:
    (root / "cluster.db").write_bytes(b"this is not a database" * 100)
    before = (root / "cluster.db").read_bytes()
    with daemon("--root", root) as node:
        assert node.process.wait(_DEADLINE) == 1
        assert f"error: {root}/cluster.db" in node.log
    assert (root / "cluster.db").read_bytes() == before


def test_a_root_that_is_too_long_is_refused_with_the_length(root: Path) -> None:
    with daemon("--root", root / ("x" * 100)) as node:
        assert node.process.wait(_DEADLINE) == 1
        assert "107 are possible" in node.log


def test_an_open_watch_does_not_delay_the_stop(root: Path) -> None:
    command = [sys.executable, "-m", "devlet", "up", "--root", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline().startswith("devlet is ready")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(root / "devlet.sock"))
            client.sendall(b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200 OK" in client.recv(65536)
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(60) == 0


def ask(path: Path, url: str) -> int:
    """Return the code of an answer on the unix socket, or 0 if there is none."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_DEADLINE)
        try:
            client.connect(str(path))
            client.sendall(f"GET {url} HTTP/1.1\r\nHost: devlet\r\nConnection: close\r\n\r\n".encode())
            return int(client.recv(4096).split()[1])
        except (ConnectionError, FileNotFoundError, IndexError):
            return 0


def test_ready_means_that_drivers_find_their_directories_and_the_node_s_sockets(root: Path) -> None:
    with daemon("--root", root, "--node-name", "n1") as node:
        codes = []
        end = time.monotonic() + _DEADLINE
        while (code := ask(root / "devlet.sock", "/readyz")) != 200:
            if code:
                codes.append(code)
                assert all((root / name).is_dir() for name in DIRECTORIES)
            assert time.monotonic() < end, f"not ready after {_DEADLINE} s: {node.log}"
            time.sleep(0.02)  # or else it takes a core from the daemon
        assert set(codes) <= {500}
        assert all((root / name).is_dir() for name in DIRECTORIES)
        assert all((root / name / "kubelet.sock").is_socket() for name in ("device-plugins", "pod-resources"))
