"""What a run reads and writes around the checks."""

import json
import os
import signal
import subprocess
import sys
import tempfile
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


def test_a_report_that_can_be_written_is_not_made_before_there_is_one(tmp_path: Path) -> None:
    assert main.run(["sanity", "device-plugin", f"--report=json={tmp_path}/r.json", "--", "/no/such/driver"]) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_reports_are_utf_8_whatever_the_driver_and_the_locale_are(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "devlet", "sanity", "device-plugin", "--wait=1s", "--only=DP-REG-1"]
    files = [f"--report={form}={tmp_path}/{form}" for form in ("json", "html", "junit", "text")]
    driver: list[str | bytes] = ["--", "sh", "-c", b"printf '\\377\\342\\200\\246\\033[2J'; exit 1 # \xff"]
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([*command, *files, *driver], capture_output=True, timeout=120, env=env)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"\x1b" not in done.stdout
    for form in ("json", "html", "junit", "text"):
        text = (tmp_path / form).read_bytes().decode()
        assert "…\\x1b[2J" in text.replace("\\\\", "\\") and "\x1b" not in text


@pytest.mark.long
def test_a_closed_output_ends_the_run_without_a_traceback() -> None:
    command = [sys.executable, "-m", "devlet", "sanity", "device-plugin", "--only=DP-REG-*", *SOUND]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout and child.stderr
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 1


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_stops_the_driver_and_reports_what_was_done(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "devlet", "sanity", "device-plugin", f"--report=json={tmp_path}/r.json"]
    driver = ["--only=DP-REG-1", "--only=DP-KILL-*", "--", "sh", "-c", f'echo $$ >> {tmp_path}/pids; exec "$@"', "sh"]
    with tempfile.TemporaryDirectory() as temporary_directory:
        env = {**os.environ, "TMPDIR": temporary_directory}
        with subprocess.Popen([*command, *driver, *SOUND[1:]], stdout=subprocess.PIPE, text=True, env=env) as child:
            assert child.stdout
            assert child.stdout.readline().startswith("passed  DP-REG-1 ")
            child.send_signal(number)
            rest = child.stdout.read()
        assert not os.listdir(temporary_directory)
    assert child.returncode == 128 + number
    assert f"interrupted by {number.name}: 1 passed" in rest
    document = json.loads((tmp_path / "r.json").read_text())
    assert (document["interrupted"], len(document["results"])) == (number.name, 1)
    for pid in (tmp_path / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.long
def test_variables_of_the_driver_are_given_or_taken_over() -> None:
    shell = 'echo "$A-$B-$C"; exit 1'
    command = [
        sys.executable,
        "-m",
        "devlet",
        "sanity",
        "device-plugin",
        "--env=A=1",
        "--env=B",
        "--",
        "sh",
        "-c",
        shell,
    ]
    env = {**os.environ, "B": "2", "C": "3"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    assert "1-2-\n" in done.stdout
