import json
from pathlib import Path

import pytest

from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import NODE, pod
from tests.support.chaos.snapshot import Snapshot, claim_names, consumers, lacks_claims, take
from tests.support.peers.peer_node import TEST, PeerNode, device

pytestmark = pytest.mark.anyio


def test_versions_tell_whether_something_has_happened() -> None:
    def at(version: str) -> Snapshot:
        return Snapshot(pods=({"metadata": {"resourceVersion": version}},))

    assert at("1").versions == at("1").versions != at("2").versions


def test_claims_of_a_pod_are_those_it_names_and_those_that_were_made_for_it() -> None:
    entries = [{"name": "a", "resourceClaimName": "shared"}, *({"name": each} for each in "bcd")]
    made = [{"name": "b", "resourceClaimName": "own-x"}, {"name": "c"}]
    train = {
        "metadata": {"name": "train", "uid": "u"},
        "spec": {"resourceClaims": entries[:3]},
        "status": {"resourceClaimStatuses": made},
    }
    claims = [
        {"metadata": {"name": name}, "status": {"reservedFor": [{"name": "train", "uid": "u"}]}}
        for name in ("shared", "own-x")
    ]
    assert claim_names(train) == {"a": "shared", "b": "own-x", "c": None}
    assert consumers(claims[0]) == {"u": "train"} and consumers({}) == {}
    assert not lacks_claims(train, claims) and lacks_claims(train, claims[:1])
    assert lacks_claims({**train, "spec": {"resourceClaims": entries}}, claims)  # one was not made yet


@pytest.mark.long
async def test_it_has_what_the_api_and_the_node_say(root: Path) -> None:
    async with (
        PeerNode(root, root) as node,
        FakeDraDriver(root, TEST),
        FakeDevicePlugin(node.plugins, "v.com/gpu", 2, follow=True),
        connected(kubeconfigs.connection([node.kubeconfig])) as cluster,
    ):
        await node.until_up(TEST)
        await node.until_healthy("v.com/gpu", 2)
        uid = await node.run("claims", device(TEST))
        await node.create(pod("plain", {"v.com/gpu": 1}))
        plain = await node.until_phase("plain", "Running")
        (root / "plugins" / "old").mkdir(parents=True)
        (root / "plugins" / "old" / "checkpoint.json").write_text(json.dumps({"preparedClaims": [{"uid": "u1"}]}))
        found = await take(cluster, {NODE: node})
    assert [each["metadata"]["name"] for each in found.pods] == ["claims", "plain"]
    assert [each["metadata"]["uid"] for each in found.claims] == [uid]
    assert [each["metadata"]["name"] for each in found.nodes] == [NODE]
    [state] = found.states
    assert ([each.uid for each in state.prepared], len(state.specs)) == ([uid], 1)
    assert [each.pod for each in state.devices] == [plain["metadata"]["uid"]]
    assert (set(state.holders), set(state.listed)) == ({plain["metadata"]["uid"]}, {"claims", "plain"})
    assert state.drivers == {"old": ("u1",)}
