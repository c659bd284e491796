"""The command line; what the suite finds is tested with the suite."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from devlet.cli import main

SOUND = [
    "--",
    sys.executable,
    "-m",
    "tests.support.mutants.sound_device_plugin",
    "--directory={device_plugins}",
    "--cdi={cdi}",
]
FAULTY = [*SOUND[:3], "tests.support.mutants.faulty_device_plugin", *SOUND[4:], "--bug"]


def sanity(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "devlet", "sanity", "device-plugin", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"})


def test_a_sound_driver_is_passed_with_0_and_reports_are_written(tmp_path: Path) -> None:
    report = f"--report=json={tmp_path}/r.json"
    done = sanity("--only=DP-REG-[12]", "--seed=4", report, f"--report=html={tmp_path}/r.html", *SOUND)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "passed  DP-REG-1     The plugin registers soon after it starts: registered example.com/led\n"
    )
    assert "\n2 passed in " in done.stdout and "--seed 4" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["seed"] == 4
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_a_finding_is_1_and_a_report_on_standard_output_is_nothing_but_that() -> None:
    done = sanity("--only=DP-LIST-4", "-o", "json", *FAULTY, "DP-LIST-4")
    assert done.returncode == 1
    assert json.loads(done.stdout)["counts"] == {"failed": 1}
    assert done.stderr == "failed  DP-LIST-4    Device IDs are unique: listed more than once: dev-0\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only there orphans can be adopted")
def test_what_a_driver_has_started_in_a_session_of_its_own_ends_with_it(tmp_path: Path) -> None:
    shell = f"setsid sleep 1000 & echo $! > {tmp_path}/pid; exec {shlex.join(SOUND[1:])}"
    assert sanity("--only=DP-REG-1", "--", "sh", "-c", shell).returncode == 0
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


@pytest.mark.long
def test_nothing_of_grpc_gets_among_our_lines() -> None:
    done = sanity("--only=DP-STOP-1", *SOUND)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_warnings_count_if_it_is_strict() -> None:
    words = ["--only=DP-PREF-6", *FAULTY, "DP-PREF-6"]
    assert (sanity(*words).returncode, sanity("--strict", *words).returncode) == (0, 1)


def test_a_driver_that_cannot_be_looked_at_is_2() -> None:
    done = sanity("--wait=1s", "--only=DP-LIST-*", "--", "sh", "-c", "echo must be root; exit 1")
    assert done.returncode == 2
    assert "the driver exited with 1 before it was registered; the end of its log:\nmust be root" in done.stdout


def as_nobody(*words: str) -> list[str]:
    """Or as who we are, if that is not root."""
    return [*["setpriv", "--reuid=65534", "--clear-groups"], *words] if os.geteuid() == 0 else list(words)


@pytest.mark.skipif(sys.platform != "linux", reason="setpriv is of util-linux")
@pytest.mark.parametrize("kind", ["device-plugin", "dra"])
def test_a_driver_that_lacks_permissions_is_reported_in_a_sentence(tmp_path: Path, kind: str) -> None:
    (tmp_path / "led").touch(mode=0)
    driver = as_nobody("sh", "-c", f"exec cat < {tmp_path}/led")
    done = {"device-plugin": sanity, "dra": sanity_dra}[kind]("--wait=1s", "--only=D*-REG-1", "--", *driver)
    assert done.returncode == 1
    assert "Permission denied" in done.stdout
    who = "run it as root with" if os.geteuid() == 0 else "run the suite as root)"
    assert f"(the driver seems to lack permissions: {who}" in done.stdout


def test_a_driver_that_does_not_come_up_is_a_finding() -> None:
    done = sanity("--wait=1s", "--only=DP-REG-*", "--", "sh", "-c", "echo no lights; exit 1")
    assert done.returncode == 1
    assert "failed  DP-REG-1     The plugin registers soon after it starts: the driver exited with 1" in done.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "give either the command"),
        (["--attach", "--", "true"], "give either the command"),
        (["--only=NOPE", "--", "true"], "no check matches NOPE"),
        (["--report=pdf=x", "--", "true"], "--report pdf=x: expected FORMAT=FILE, with one of html, json, junit, text"),
        (["--nope"], "No such option"),
        (["--", "/no/such/driver"], "/no/such/driver: no such program"),
        (["--", ""], "the name of the program is empty"),
        (["--", "true", "{rot}"], "unknown placeholder {rot}: use one of {root}, {device_plugins}"),
        (["--env=A={node}", "--", "true"], "unknown placeholder {node}"),
        (["--keep=/proc/x", "--", "true"], "/proc/x: No such file or directory"),
        (["--report=json=/no/such/r.json", "--", "true"], "--report json=/no/such/r.json: No such file or directory"),
        (["--report=json=/", "--", "true"], "--report json=/: Is a directory"),
        (["--attach", "--device-plugins=/no/such"], "/no/such does not exist"),
    ],
)
def test_wrong_usage_is_2_and_no_finding(words: list[str], error: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["sanity", "device-plugin", *words]) == 2
    assert error in capfd.readouterr().err


def test_without_a_kind_it_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["sanity"]) == 0
    assert "The exit code is 0 if all checks pass" in capsys.readouterr().out


def test_the_checks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["sanity", "device-plugin", "--list"]) == 0
    assert capsys.readouterr().out.startswith("DP-REG-1     The plugin registers soon after it starts\n")


DRA = [
    "--",
    sys.executable,
    "-m",
    "tests.support.mutants.sound_dra_driver",
    "--root={root}",
    "--cdi={cdi}",
    "--kubeconfig={kubeconfig}",
    "--node={node}",
]


def sanity_dra(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "devlet", "sanity", "dra", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"})


@pytest.mark.long
def test_a_dra_driver_is_looked_at_with_the_parameters_that_it_takes(tmp_path: Path) -> None:
    (tmp_path / "parameters.yaml").write_text("color: green\n---\ncolor: red\n")
    done = sanity_dra(f"--config={tmp_path}/parameters.yaml", "--only=DRA-REG-1", "--only=DRA-PREP-12", *DRA)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\npassed  DRA-PREP-12  The driver's own parameters are accepted\n" in done.stdout


@pytest.mark.long
def test_what_is_missing_for_a_dra_driver_is_said() -> None:
    done = sanity_dra("--only=DRA-REG-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "give either the command that starts the driver, after --, or --attach" in done.stderr
    assert "--attach needs --kubeconfig" in sanity_dra("--attach").stderr
    assert "--config /no/such/file" in sanity_dra("--config=/no/such/file", *DRA).stderr


def test_the_checks_of_dra_drivers_are_listed() -> None:
    done = sanity_dra("--list")
    assert done.returncode == 0
    assert done.stdout.startswith("DRA-REG-1    The driver can be registered soon after it starts\n")
