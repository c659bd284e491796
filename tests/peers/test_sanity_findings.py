"""docs/sanity-findings.md says what is true: its programs show what is wrong with drivers, without devlet."""

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.runtime import kubelet_paths

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers]

PAGE = (Path(__file__).parents[2] / "docs" / "sanity-findings.md").read_text()
PROGRAMS = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def output(root: Path, program: str, driver: Path, *before: str) -> str:
    for name, text in PROGRAMS.items():
        (root / name).write_text(text)
    words = [*before, sys.executable, str(root / program), str(driver)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_program_needs_devlet() -> None:
    assert {name for name, text in PROGRAMS.items() if "devlet" in text} == set()
    plugins = {"start.py", "lost_change.py", "crash.py", "goroutines.py", "memory.py", "same_second.py"}
    assert set(PROGRAMS) == plugins | {"start_dra.py", "forgotten.py", "in_place.py", "long_name.py", "twice.py"}


def test_the_generic_plugin_does_not_tell_a_kubelet_that_came_back(peers: "Peers", root: Path) -> None:
    peers.need("generic-device-plugin")
    said = output(root, "lost_change.py", peers.binaries / "generic-device-plugin")
    assert said == "lists since the kubelet is back: 1\n"


def test_the_generic_plugin_ends_when_it_has_many_streams(peers: "Peers", root: Path) -> None:
    peers.need("generic-device-plugin")
    said = output(root, "crash.py", peers.binaries / "generic-device-plugin")
    assert said == "exit code 2 ['fatal error: concurrent map iteration and map write']\n"


def test_the_generic_plugin_stumbles_over_its_socket_within_a_second(peers: "Peers", root: Path) -> None:
    peers.need("generic-device-plugin")
    said = output(root, "same_second.py", peers.binaries / "generic-device-plugin")
    assert re.fullmatch(r"tries that failed: [2-9] exit code: None\n", said)


def test_the_generic_plugin_keeps_streams_that_were_closed(peers: "Peers", root: Path) -> None:
    peers.need("generic-device-plugin")
    said = output(root, "goroutines.py", peers.binaries / "generic-device-plugin")
    before, after = map(int, said.split()[1:])
    assert after >= before + 90  # of 100 streams: some of those before were of its start and have ended


def test_the_sample_plugin_keeps_streams_that_were_closed(peers: "Peers", root: Path) -> None:
    peers.need("sample-device-plugin")
    mounted = [sys.executable, "-m", kubelet_paths.__name__, str(root)]
    said = output(root, "memory.py", peers.binaries / "sample-device-plugin", *mounted)
    before, after = map(int, said.split()[1:])
    assert after > before + 2000 * 4


def test_the_test_driver_forgets_claims_when_it_is_killed(peers: "Peers", root: Path) -> None:
    peers.need("test-driver")
    assert output(root, "forgotten.py", peers.binaries / "test-driver") == "CDI files: 1\n"


def test_the_test_driver_writes_cdi_files_in_place(peers: "Peers", root: Path) -> None:
    peers.need("test-driver")
    assert output(root, "in_place.py", peers.binaries / "test-driver") == "written where the link leads: True\n"


def test_the_helper_library_never_unprepares_a_claim_with_a_long_name(peers: "Peers", root: Path) -> None:
    peers.need("test-driver")
    said = output(root, "long_name.py", peers.binaries / "test-driver")
    assert said == "prepared: True\ntoo long: True\n"


@pytest.mark.parametrize("driver", ["test-driver", "dra-example-kubeletplugin"])
def test_dra_drivers_give_one_device_to_two_claims(peers: "Peers", root: Path, driver: str) -> None:
    peers.need(driver)
    assert output(root, "twice.py", peers.binaries / driver) == "one True\ntwo True\n"
