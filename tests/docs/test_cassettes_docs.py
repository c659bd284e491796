"""The examples of docs/cassettes.md do what the page says, and its numbers are those of the code."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.selectors import Selectors
from devlet.cassettes import cassette_file, library, placeholders, rules
from devlet.objects.identifiers import DriverName
from devlet.objects.types.slice import Device

PAGE = (Path(__file__).parents[2] / "docs" / "cassettes.md").read_text()
DEVLET = shlex.join([sys.executable, "-m", "devlet"])


def transcript() -> list[tuple[str, str]]:
    """Commands, and what they print."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
    return [(first, rest) for first, _, rest in (part.partition("\n") for part in re.split(r"(?m)^\$ ", blocks)[1:])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.mark.parametrize(("command", "expected"), transcript(), ids=[command for command, _ in transcript()])
def test_an_example_prints_what_the_page_says(command: str, expected: str, folder: Path) -> None:
    line = re.sub(r"^devlet\b", lambda _: DEVLET, command)
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.stdout == expected, done.stderr
    assert done.returncode == int("friday" in command)


def steps(root: Path) -> Iterator[list[str]]:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.replace("/tmp/node1", str(root)).splitlines():
        yield shlex.split(line)


@pytest.mark.long
def test_the_node_on_a_laptop_works_as_the_page_says(root: Path, folder: Path) -> None:
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("DEVLET_", "NOTIFY_", "WATCHDOG_"))}
    printed = []
    with ExitStack() as stack:
        for words in steps(root):
            command = [sys.executable, "-m", *words]
            if words[-1] == "&":
                started = subprocess.Popen(
                    command[:-1], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ
                )
                stack.enter_context(started)
                stack.callback(started.kill)
                assert started.stdout is not None and " is ready: " in started.stdout.readline()
                continue
            done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=folder, timeout=120)
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
            printed.append(done.stdout)
    assert "gpu.nvidia.com" in printed[0]
    assert [text for text in printed if text == "no differences\n"] == ["no differences\n"] * 2
    assert "laptop" not in (folder / "mine.yaml").read_text()


def test_the_example_file_is_a_cassette(folder: Path) -> None:
    assert cassette_file.read(folder / "friday.yaml").node == "desk"


def test_every_placeholder_is_described() -> None:
    table = PAGE.partition("| placeholder |")[2].partition("\n\n")[0]
    known = {value for name, value in vars(placeholders).items() if name.isupper() and name in placeholders.__all__}
    assert known == set(re.findall(r"`(\{.*?\})`", table))


def test_the_limits_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    (found,) = re.findall(
        r"at most (\d+) MiB and ([\d,]+) values, with at most (\d+) drivers, .* and ([\d,]+) devices", text
    )
    assert found == (
        str(cassette_file.MAX_BYTES >> 20),
        f"{cassette_file.MAX_VALUES:,}",
        str(rules.MAX_DRIVERS),
        f"{rules.MAX_DEVICES:,}",
    )


SELECTORS = re.findall(r"^\| (\S+) \| `(.+)` \| (\d+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("name", "selector", "count"), SELECTORS, ids=[selector for _, selector, _ in SELECTORS])
def test_a_selector_matches_as_many_devices_as_the_page_says(name: str, selector: str, count: str) -> None:
    program = Selectors().program(selector)
    devices = [
        DeviceInput(DriverName(driver.name), msgspec.convert(device, Device))
        for driver in library.shipped(name).drivers
        for pool in driver.pools
        for device in pool.devices
    ]
    assert program.matches(devices).count(True) == int(count)


def test_each_cassette_has_a_selector() -> None:
    assert {name for name, _, _ in SELECTORS} == set(library.names())
