"""All drivers that devlet ships pass `devlet sanity`: examples, the README's, and what `devlet driver new` makes.

How a driver starts, stops and registers is the SDK's work, the same for all of them. So one driver of each kind gets
every check, and the others get those for what the driver itself decides; one that waits to be found also those for how
it registers. `make soak` (DEVLET_SANITY=all) runs every check on every driver."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from devlet.cli.driver_project import Kind, create, names_of
from tests.support.fake_usb import FakeUsb

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

README = (Path(__file__).parents[2] / "README.md").read_text()
EXAMPLES = [sys.executable, "-m"]
PLUGIN = ["--device-plugin-path={device_plugins}", "--kubelet-root={root}"]
FOUND = [*PLUGIN, "--registry={registry}"]
DRA = ["--kubeconfig={kubeconfig}", "--node-name={node}", "--kubelet-root={root}", "--cdi-root={cdi}"]
DRA = [*DRA, "--rolling-update-uid={instance}", "--device-metadata=all"]
FILES = [f"--device={name}=/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")]
FILES = [*FILES, "--device=extra={root}/extra"]

# What cannot be looked at, and why. Anything else has to pass.
NO_PREFERENCE = "DP-PREF-[1-5]"  # all its devices are equally good
NO_PRE_START = "DP-PRE-* DP-KILL-5"  # nothing is to be done to them before a start
NO_CDI = "DP-ALLOC-12 DP-ALLOC-13 DP-ALLOC-14"  # it gives paths and variables instead
PLAIN = f"{NO_PRE_START} {NO_CDI} DP-WATCH-*"  # ... and it calls the kubelet, and does not wait to be found
WAITS = "DP-REG-3 DP-REG-6 DP-REG-9 DP-REG-10 DP-AGAIN-*"  # it never registers by itself, and is found by each kubelet
SIMPLE = "DRA-CALL-8 DRA-CHANGE-4 DRA-HEALTH-* DRA-STOP-3 DRA-PREP-12"  # it knows no health, and nothing can be set
NO_SHARES = "DRA-PREP-14 DRA-PREP-20"  # one device is for one claim
ALL_SHARED = "DRA-PREP-13"  # ... and here for several
NO_METADATA = "DRA-META-*"  # as long as nobody asks for it
NO_CHANGE = "*-CHANGE-*"  # its devices are always the same

# The checks for the SDK's part: they start a driver of their own each, or wait for long.
OF_THE_SDK = {
    "device-plugin": "DP-AGAIN-* DP-KILL-* DP-STOP-* DP-REG-* DP-CALL-* DP-WATCH-*",
    "dra": "DRA-AGAIN-* DRA-KILL-* DRA-STOP-* DRA-TWO-* DRA-CALL-* DRA-REG-11 DRA-SLICE-1[01] DRA-HEALTH-[79]",
}
WHOLE = [("device-plugin", "fake_gpu_plugin"), ("dra", "fake_gpu_dra")]
REGISTERS = {"fake_gpu_plugin, found": "DP-REG-* DP-WATCH-*"}  # in a way of its own, which is checked as well
ALL = os.environ.get("DEVLET_SANITY") == "all"

Command = Callable[[Path], list[str]]
Case = tuple[str, str]
Results = list[dict[str, str]]


def toggled(file: str, make: str) -> str:
    """A command that makes the file, or removes it if it is there."""
    return f"mkdir -p $(dirname {file}); if [ -e {file} ]; then rm {file}; else {make} {file}; fi"


def example(name: str, *words: str) -> list[str]:
    return [*EXAMPLES, f"devlet.examples.{name}", *words]


def sick(name: str, *words: str) -> list[str]:
    command = example(name, *words, "--num-devices=10", "--sick-directory={root}/sick")
    return ["--change", toggled("{root}/sick/gpu-0", "touch"), "--", *command]


def gpus(place: Path, *words: str) -> list[str]:
    (place / "parameters.json").write_text('{"sharing": "timeslice"}')
    return [f"--config={place}/parameters.json", *sick("fake_gpu_dra", *DRA, *words)]


def files(*words: str) -> list[str]:
    return ["--change", toggled("{root}/extra", "ln -s /dev/null"), "--", *example("dev_nodes", *words, *FILES)]


def sticks(place: Path, *words: str) -> list[str]:
    """The one with ttyUSB4 comes and goes."""
    usb = FakeUsb(place)
    for number in range(5):
        usb.plug(f"{number + 1}", "0403", "6001", serial=f"A{number}", tty=f"ttyUSB{number}")
    tty, hidden, by_id = usb.roots.sysfs / "class/tty/ttyUSB4", place / "hidden", usb.roots.dev / "serial/by-id/x"
    change = f"if [ -L {tty} ]; then mv {tty} {hidden}; else mv {hidden} {tty}; fi; touch {by_id}; rm {by_id}"
    flags = [f"--sysfs={usb.roots.sysfs}", f"--dev={usb.roots.dev}"]
    return ["--change", change, "--", *example("serial_ports", *words, *flags)]


def project(place: Path, kind: Kind) -> list[str]:
    """As its README says."""
    create(place / "led", kind, names_of("led", kind))
    readme = (place / "led/README.md").read_text().replace("\\\n", "")
    flags = readme.partition(f"devlet sanity {kind} -- led-driver ")[2].partition("\n")[0].split()
    return ["--", sys.executable, str(place / "led/src/led_driver/driver.py"), *flags]


def readme(place: Path) -> list[str]:
    (source,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (place / "leds.py").write_text(source)
    return ["--", sys.executable, str(place / "leds.py"), *DRA]


PLUGINS: Mapping[str, tuple[Command, str]] = {
    "fake_gpu_plugin": (lambda place: sick("fake_gpu_plugin", *PLUGIN), PLAIN),
    "fake_gpu_plugin, found": (lambda place: sick("fake_gpu_plugin", *FOUND), f"{NO_PRE_START} {NO_CDI} {WAITS}"),
    "serial_ports": (lambda place: sticks(place, "device-plugin", *PLUGIN), f"{PLAIN} {NO_PREFERENCE}"),
    "dev_nodes": (lambda place: files("device-plugin", *PLUGIN), f"{PLAIN} {NO_PREFERENCE}"),
    "dev_nodes, several users": (
        lambda place: files("device-plugin", *PLUGIN, "--users=2"),
        f"{PLAIN} {NO_PREFERENCE}",
    ),
    "driver new": (
        lambda place: project(place, Kind.DEVICE_PLUGIN),
        f"{PLAIN} {NO_PREFERENCE} {NO_CHANGE}",
    ),
}
DRIVERS: Mapping[str, tuple[Command, str]] = {
    "fake_gpu_dra": (lambda place: gpus(place), NO_SHARES),
    "fake_gpu_dra, shared": (lambda place: gpus(place, "--shared"), ALL_SHARED),
    "fake_gpu_dra, partitions": (lambda place: gpus(place, "--partitions=2"), NO_SHARES),
    "serial_ports": (lambda place: sticks(place, "dra", *DRA), f"{NO_SHARES} {SIMPLE}"),
    "dev_nodes": (lambda place: files("dra", *DRA), f"{NO_SHARES} {SIMPLE}"),
    "dev_nodes, several users": (lambda place: files("dra", *DRA, "--users=2"), f"{ALL_SHARED} {SIMPLE}"),
    "driver new": (lambda place: project(place, Kind.DRA), f"{NO_SHARES} {SIMPLE} {NO_CHANGE} {NO_METADATA}"),
    "README": (readme, f"{NO_SHARES} {SIMPLE} {NO_CHANGE}"),
}


def sanity(kind: str, name: str) -> Results:
    command: Command = KINDS[kind][name][0]
    whole = ALL or (kind, name) in WHOLE
    left_out = set() if whole else set(OF_THE_SDK[kind].split()) - set(REGISTERS.get(name, "").split())
    with tempfile.TemporaryDirectory(prefix="dv") as place:
        words = [sys.executable, "-m", "devlet", "sanity", kind, "-o", "json", "--seed=1"]
        words += [f"--skip={each}" for each in sorted(left_out)]
        words += command(Path(place))
        done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1), done.stderr
    results: Results = json.loads(done.stdout)["results"]
    return results


KINDS = {"device-plugin": PLUGINS, "dra": DRIVERS}
CASES = [(kind, name) for kind, drivers in KINDS.items() for name in drivers]


@pytest.mark.parametrize("case", CASES, ids=": ".join)
def test_it_passes_all_that_can_be_looked_at(case: Case) -> None:
    kind, name = case
    allowed = KINDS[kind][name][1].split()
    found = [
        f"{each['outcome']} {each['id']}: {each['text']}"
        for each in sanity(kind, name)
        if each["outcome"] != "passed"
        and not (each["outcome"] == "skipped" and any(fnmatchcase(each["id"], pattern) for pattern in allowed))
    ]
    assert found == []
