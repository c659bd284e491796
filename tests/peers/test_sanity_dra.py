"""`devlet sanity` on DRA drivers that others have written: what it finds is known, and explained."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600)]

FINDINGS = (Path(__file__).parents[2] / "docs" / "sanity-findings.md").read_text()
GPU = {
    "apiVersion": "gpu.resource.example.com/v1alpha1",
    "kind": "GpuConfig",
    "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
}
EXAMPLE = [
    "--kubeconfig={kubeconfig}",
    "--node-name={node}",
    "--cdi-root={cdi}",
    "--kubelet-registrar-directory-path={registry}",
    "--kubelet-plugins-directory-path={plugins}",
    "--pod-uid={instance}",
]
TEST = (
    "mkdir -p {plugins}/test-driver.cdi.k8s.io {cdi}; exec %s --kubeconfig={kubeconfig} kubelet-plugin"
    " --node-name={node} --plugin-registration-path={registry} --datadir={plugins} --cdi-dir={cdi}"
)


def sanity(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "devlet", "sanity", "dra", "-o", "json", "--seed=1", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580)
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def found(report: dict[str, Any], *outcomes: str) -> set[str]:
    return {result["id"] for result in report["results"] if result["outcome"] in outcomes}


@pytest.mark.long
def test_the_example_driver_keeps_the_contract(peers: "Peers", root: Path) -> None:
    peers.need("dra-example-kubeletplugin")
    (root / "gpu.json").write_text(json.dumps(GPU))
    words = [str(peers.binaries / "dra-example-kubeletplugin"), *EXAMPLE]
    report = sanity(f"--config={root}/gpu.json", "--", *words)
    assert found(report, "failed") == set()
    assert found(report, "warned") == {"DRA-PREP-13"}
    assert not found(report, "skipped") & {f"DRA-TWO-{number}" for number in range(1, 6)}


@pytest.mark.long
def test_shares_of_the_example_driver_keep_the_contract(peers: "Peers", root: Path) -> None:
    peers.need("dra-example-kubeletplugin")
    words = [str(peers.binaries / "dra-example-kubeletplugin"), *EXAMPLE, "--gpu-allow-multiple-allocations"]
    report = sanity("--only=DRA-PREP-*", "--only=DRA-CDI-*", "--only=DRA-UNPREP-*", "--", *words)
    assert found(report, "failed", "warned") == set()
    assert "DRA-PREP-14" in found(report, "passed")


@pytest.mark.long
def test_the_test_driver_has_the_defects_that_are_known_and_no_other(peers: "Peers") -> None:
    peers.need("test-driver")
    report = sanity("--", "sh", "-c", TEST % (peers.binaries / "test-driver"))
    # DRA-CDI-5 depends on when the file is read, DRA-KILL-7 on whether the driver is killed before it has removed the
    # claim's file.
    assert found(report, "failed") - {"DRA-CDI-5", "DRA-KILL-7"} == {"DRA-KILL-5"}
    assert found(report, "warned") | {"DRA-CDI-5"} == {"DRA-PREP-13", "DRA-CDI-5", "DRA-HEALTH-3"}
    assert found(report, "failed", "warned") <= set(re.findall(r"DRA-[A-Z]+-\d+", FINDINGS))


def test_with_metadata_a_claim_with_a_long_name_is_never_unprepared(peers: "Peers") -> None:
    peers.need("test-driver")
    command = f"{TEST % (peers.binaries / 'test-driver')} --enable-device-metadata"
    report = sanity("--only=DRA-PREP-16", "--", "sh", "-c", command)
    [result] = report["results"]
    assert result["outcome"] == "failed"
    assert "file name too long" in result["text"]


@pytest.mark.long
def test_two_instances_of_the_test_driver_do_not_know_of_each_other(peers: "Peers") -> None:
    peers.need("kubelet-claims")
    words = (
        "mkdir -p {plugins}/test-driver.cdi.k8s.io {cdi}; exec %s test-driver --drivername=test-driver.cdi.k8s.io"
        " --kubeconfig={kubeconfig} --node-name={node} --plugin-registration-path={registry} --datadir={plugins}"
        " --cdi-dir={cdi} --uid={instance} --control={root}/{instance}.control"
    )
    report = sanity("--only=DRA-TWO-*", "--", "sh", "-c", words % (peers.binaries / "kubelet-claims"))
    assert found(report, "failed") == {"DRA-TWO-2", "DRA-TWO-5"}
