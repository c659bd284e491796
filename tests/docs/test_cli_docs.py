"""docs/cli.md and docs/configuration.md document exactly the flags and keys that exist, and their examples run."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from _pytest.mark.structures import ParameterSet

from devlet.cli.commands import COMMANDS, cli
from devlet.daemon.config import KEYS, load
from devlet.state import claim_checkpoint
from devlet.state.checkpoint_file import CheckpointFile
from devlet.state.device_checkpoint import Encoder, Entry

DOCS = Path(__file__).parents[2] / "docs"
CLI = (DOCS / "cli.md").read_text()
CONFIGURATION = (DOCS / "configuration.md").read_text()
YAML_EXAMPLE = CONFIGURATION.partition("```yaml\n")[2].partition("```")[0]

_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][a-z-]*")


def section(command: str) -> str:
    match = re.search(rf"^## {command}\n(.*?)(?=^##? |\Z)", CLI, re.MULTILINE | re.DOTALL)
    assert match, f"docs/cli.md has no section {command}"
    return match[1]


def flags(command: click.Command) -> set[str]:
    """Return the flags of a command, including those of its verbs."""
    verbs = command.commands.values() if isinstance(command, click.Group) and command is not cli else ()
    own = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    return own.union(*map(flags, verbs))


def documented_flags(command: str) -> set[str]:
    rows = [line.split(" | ")[0] for line in section(command).splitlines() if line.startswith("| `")]
    return {flag for row in rows for flag in _FLAG.findall(row)}


def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {f"devlet {name}": cli.get_command(context, name) for name in COMMANDS}
    return {name: command for name, command in found.items() if command is not None}


def test_every_command_has_a_section() -> None:
    assert re.findall(r"^## (devlet .*)$", CLI, re.MULTILINE) == sorted(commands())


@pytest.mark.parametrize("name", sorted(f"devlet {name}" for name in COMMANDS))
def test_the_documented_flags_of_a_command_are_its_flags(name: str) -> None:
    assert documented_flags(name) == flags(commands()[name])


def test_the_documented_flags_of_the_group_are_its_flags() -> None:
    assert documented_flags("devlet") == flags(cli) | {"-h", "--help"}


def test_every_configuration_key_is_documented_with_its_variable() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (?:`(\w+)`)? ?\|", CONFIGURATION, re.MULTILINE)
    assert rows == [(key.name, key.variable) for key in KEYS]


def test_the_example_file_sets_every_key_to_its_default_in_the_table(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(YAML_EXAMPLE)
    config, default = load({}, {}, file), load({"root": "/var/lib/devlet"}, {})
    assert all(key.name.rpartition(".")[2] + ":" in YAML_EXAMPLE for key in KEYS)
    assert (config.root, config.stop_timeout, config.store) == (default.root, default.stop_timeout, default.store)
    assert config.node == default.node


EXAMPLES = re.findall(r"^\$ (devlet .*)$", CLI, re.MULTILINE)
# In this order, because some examples need the results of others.
ON_OBJECTS = (
    *("token", "apply", "get", "describe", "capture", "cel", "events", "wait", "exec", "explain", "simulate", "delete"),
)


def put_checkpoint(root: Path) -> None:
    entry = Entry("6b1c2f9e", "main", "example.com/gpu", {0: ("gpu-0",)}, b"")
    file = CheckpointFile(root / "device-plugins" / "kubelet_internal_checkpoint")
    file.prepare()
    file.write(Encoder().encode([entry], {"example.com/gpu": ["gpu-0", "gpu-1"]}))
    claim = claim_checkpoint.ClaimEntry("9d3b07aa", "train-gpu", "default", frozenset({"6b1c2f9e"}), None)
    CheckpointFile(root / "dra_manager_state").write(claim_checkpoint.Encoder().encode([claim]))
    CheckpointFile(root / "dra_health_state").write(b'{"gpu.example.com":{"Devices":{}}}')


def put_store(root: Path) -> None:
    """Run devlet on the root once."""
    command = [sys.executable, "-m", "devlet", "up", "--root", str(root), "--node-name", "node1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as daemon:
        ready_line(daemon)
        daemon.terminate()


SLOW = ("devlet demo --once", "devlet up --root /tmp/node1 --log-format json -v 1")


def param(line: str) -> ParameterSet:
    return pytest.param(line, marks=[pytest.mark.long] * (line in SLOW))


@pytest.mark.parametrize("line", [param(line) for line in EXAMPLES if line.split()[1] not in (*ON_OBJECTS, "control")])
def test_the_example_runs(line: str, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(YAML_EXAMPLE.replace("/var/lib/devlet", str(root)))
    if line.startswith("devlet checkpoint"):
        put_checkpoint(root)
    if line.startswith("devlet store"):
        put_store(root)
    line = line.replace("/tmp/node1", str(root)).replace("/etc/devlet/config.yaml", str(file))
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("DEVLET_", "NOTIFY_", "WATCHDOG_"))}
    with subprocess.Popen(
        [sys.executable, "-m", *shlex.split(line)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environ, "NODE_NAME": "node1"},
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            if line.startswith("devlet up"):
                assert first == f"devlet is ready: node node1, root {root}\n"
                process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, process.stderr.read() if process.stderr else ""
            assert first
        finally:
            process.kill()


SPEC = (
    '{"cdiVersion": "0.3.0", "kind": "example.com/led", "devices": [{"name": "a", "containerEdits": {"env": ["A=1"]}}]}'
)


def can_unshare() -> bool:
    return any(
        subprocess.run(["unshare", "--mount", *flags, "true"], capture_output=True).returncode == 0
        for flags in ([], ["--map-root-user"])
    )


@pytest.mark.parametrize(
    "verbs",
    [("apply", "get", "delete"), pytest.param(ON_OBJECTS, marks=pytest.mark.long)],
    ids=["some", "all"],
)
def test_the_examples_on_objects_run_one_after_the_other(verbs: tuple[str, ...], root: Path, tmp_path: Path) -> None:
    for name, content in re.findall(r"```yaml\n# (\S+)\n(.*?)```", CLI, re.DOTALL):
        (tmp_path / name).write_text(content)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("DEVLET_", "NOTIFY_", "WATCHDOG_"))}
    command = [sys.executable, "-m", "devlet", "up", "--root", str(root), "--node-name", "node1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ) as daemon:
        try:
            assert daemon.stdout is not None
            assert daemon.stdout.readline().startswith("devlet is ready")
            (root / "cdi").mkdir(exist_ok=True)
            (root / "cdi/led.json").write_text(SPEC)  # something to capture
            lines = [line for verb in verbs for line in EXAMPLES if line.split()[1] == verb]
            assert {line.split()[1] for line in lines} == set(verbs)
            for line in lines:
                if line.startswith("devlet exec") and not can_unshare():
                    continue
                words = shlex.split(line.replace("/tmp/node1", str(root)))
                done = subprocess.run(
                    [sys.executable, "-m", *words], capture_output=True, text=True, env=environ, cwd=tmp_path
                )
                assert done.returncode == 0, f"{line}: {done.stderr}"
        finally:
            daemon.kill()


def ready_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_the_examples_of_control_run_beside_a_devlet(root: Path) -> None:
    lines = [line.replace("/tmp/node1", str(root)) for line in EXAMPLES if line.startswith("devlet control")]
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("DEVLET_", "NOTIFY_", "WATCHDOG_"))}
    up = [f"devlet up --no-control --node-name node1 --root {root}"]
    with contextlib.ExitStack() as stack:
        for line in [*up, *lines]:
            process = subprocess.Popen(
                [sys.executable, "-m", *shlex.split(line)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environ,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            assert " is ready: " in ready_line(process), line
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert lines
