"""`devlet sanity` on device plugins that others have written: what it finds is known, and explained."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.timeout(1200)]

PARTS = [["DP-CHANGE-*", "DP-LIST-*"], ["DP-KILL-*", "DP-STOP-*", "DP-AGAIN-*"]]
FINDINGS = (Path(__file__).parents[2] / "docs" / "sanity-findings.md").read_text()


def sanity(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "devlet", "sanity", "device-plugin", "-o", "json", "--seed=1", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1180)
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def in_parts(*words: str) -> dict[str, Any]:
    """Return all results of three runs at the same time, each with some of the checks: the plugin mostly waits."""
    chosen = [[f"--only={each}" for each in part] for part in PARTS]
    rest = [f"--skip={each}" for part in PARTS for each in part]
    with ThreadPoolExecutor() as pool:
        reports = pool.map(lambda part: sanity(*part, *words), [*chosen, rest])
    return {"results": [result for report in reports for result in report["results"]]}


def found(report: dict[str, Any], *outcomes: str) -> set[str]:
    return {result["id"] for result in report["results"] if result["outcome"] in outcomes}


def told(report: dict[str, Any], outcome: str) -> str:
    return "\n".join(f"{each['id']}: {each['text']}" for each in report["results"] if each["outcome"] == outcome)


@pytest.mark.long
def test_the_generic_plugin_has_the_defects_that_are_known_and_no_other(peers: "Peers") -> None:
    peers.need("generic-device-plugin")
    devices = [
        {"name": "null", "groups": [{"count": 20, "paths": [{"path": "/dev/null"}]}]},
        {"name": "board", "groups": [{"paths": [{"path": "{root}/board*", "type": "Mount", "mountPath": "/board"}]}]},
    ]
    report = in_parts(
        "--wait=60s",
        "--change=mktemp {root}/boardXXXX",
        "--",
        str(peers.binaries / "generic-device-plugin"),
        "--plugin-directory={device_plugins}",
        "--listen=127.0.0.1:0",  # it is started often: a port that was free once may not be any more
        *(f"--device={json.dumps(device)}" for device in devices),
    )
    # Each stream looks at the devices every 5 s, counted from its own beginning, and takes a change from the others. Of
    # two that are open one hears of it, whichever; where one is closed this depends on when each of them began. Many
    # streams may end it. Killed and started within one second, it does not get over its old socket.
    # test_sanity_findings shows all of this, with programs that try until they see it.
    by_chance = {f"DP-{each}" for each in ("CHANGE-4", "CHANGE-5", "LIST-11", "LIST-12", "KILL-1", "KILL-3", "KILL-4")}
    assert found(report, "failed") - by_chance == {"DP-CHANGE-3"}, told(report, "failed")
    assert found(report, "warned") - by_chance == {"DP-ALLOC-16"}, told(report, "warned")
    assert found(report, "failed", "warned") <= set(re.findall(r"DP-[A-Z]+-\d+", FINDINGS))


@pytest.mark.long
def test_the_sample_plugin_keeps_the_contract(peers: "Peers") -> None:
    peers.need("sample-device-plugin")
    report = sanity("--private-mount", "--", str(peers.binaries / "sample-device-plugin"))
    assert found(report, "failed") == set(), told(report, "failed")
    # It keeps something for each stream that was closed. On a busy machine there is not enough time to see it.
    expected = set() if "too few to tell" in told(report, "passed") else {"DP-LIST-12"}
    assert found(report, "warned") == expected, told(report, "warned")
