"""Namespaces and nodes: their life, taints, drain, description."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.mark.spec("KA-10.48")
async def test_a_deleted_namespace_is_soon_gone(site: "Site") -> None:
    name = f"foo-{site.word}"
    assert await site.prints("create", "ns", name) == f"namespace/{name} created\n"
    assert (await site.prints("delete", "ns", name)).startswith(f'namespace "{name}" deleted')
    assert site.get("namespaces", name).code == 404


@pytest.mark.spec("KA-10.49")
async def test_the_default_namespace_stays(site: "Site") -> None:
    text = (await site.fails("delete", "ns", "default")).splitlines()[-1]
    assert text == 'Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted'


@pytest.mark.spec("KA-10.52")
async def test_a_node_is_cordoned_and_uncordoned(site: "Site") -> None:
    site.created("nodes", site.node_document())
    assert await site.prints("cordon", site.node) == f"node/{site.node} cordoned\n"
    assert "SchedulingDisabled" in (await site.rows("get", "node", site.node))[1][1]
    assert await site.prints("uncordon", site.node) == f"node/{site.node} uncordoned\n"
    assert "SchedulingDisabled" not in (await site.rows("get", "node", site.node))[1][1]


@pytest.mark.spec("KA-10.53")
async def test_a_node_is_tainted_and_untainted(site: "Site") -> None:
    def keys() -> list[str]:
        """Without those that controllers set and remove meanwhile."""
        taints = site.get("nodes", site.node).document["spec"].get("taints") or []
        return [taint["key"] for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]

    site.created("nodes", site.node_document())
    before = keys()
    assert await site.prints("taint", "node", site.node, "a=b:NoSchedule") == f"node/{site.node} tainted\n"
    assert sorted(keys()) == sorted([*before, "a"])
    assert await site.prints("taint", "node", site.node, "a-") == f"node/{site.node} untainted\n"
    assert keys() == before


@pytest.mark.spec("KA-10.54")
async def test_a_node_is_drained(site: "Site") -> None:
    site.bound_pod()
    site.patch("pods", "p1", {"status": {"phase": "Succeeded"}}, sub="status")
    done = await site.kubectl("drain", site.node, "--ignore-daemonsets", "--force", "--timeout=60s")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"node/{site.node} cordoned"
    assert lines[-1] == f"node/{site.node} drained"
    assert site.get("pods", "p1").code == 404


@pytest.mark.spec("KA-10.43")
async def test_a_node_is_described_with_its_slices(site: "Site") -> None:
    await site.prints("create", "-f", "-", stdin=site.base())
    described = await site.kubectl("describe", "node", site.node)
    assert described.returncode == 0
    assert "Node-Local ResourceSlices:" in described.stdout
    after = described.stdout.partition("Node-Local ResourceSlices:")[2]
    row = next(line for line in after.splitlines() if site.driver in line)
    assert [word for word in row.split() if word.isdigit()] == ["1", "2"]
    assert site.node in row


@pytest.mark.spec("KA-10.44")
async def test_there_are_no_events_and_then_there_are(site: "Site") -> None:
    none = await site.kubectl("events")
    assert (none.stdout, none.stderr) == ("", f"No events found in {site.namespace} namespace.\n")
    subject = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": site.namespace, "name": "cm1"}
    core = {
        "metadata": {"name": "e1"},
        "involvedObject": subject,
        "reason": "Made",
        "message": "it was made",
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    site.created("events", core)
    header, row = await site.rows("get", "events")
    assert header == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert row[1:] == ["Normal", "Made", "configmap/cm1", "it", "was", "made"]
    header, row = await site.rows("events")
    assert header == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert row[1:] == ["Normal", "Made", "ConfigMap/cm1", "it", "was", "made"]
