"""A whole trial, with a fake driver in place of the real ones and devlet's own command line in place of kubectl."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.plugins.dra_messages import PreparedDevice
from devlet.testing import manifests
from devlet.testing.cluster_contract.specimens import resource_slice
from devlet.testing.claim_node import SLICES
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.manifests import Manifest, at_stage, for_scheduler, manifest, trial
from devlet.testing.manifests_environment import Environment
from devlet.testing.node_process import NODE
from devlet.testing.peer_node import PeerNode

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

MANIFESTS = Path(__file__).parents[2] / "peers" / "manifests"


def test_every_manifest_has_an_outcome_and_every_stage_something_that_leads_to_it() -> None:
    paths = manifests.manifests(MANIFESTS)
    files = {path for path in MANIFESTS.glob("*.yaml") if not path.name.endswith(manifests.EXPECTED)}
    assert {path.name for path in files - set(paths)} == {"classes.yaml"}
    for found in map(manifest, paths):
        labels = {each["metadata"].get("labels", {}).get("stage", "") for each in found.documents}
        assert labels == {stage.apply for stage in found.stages} | {""}, found.name
