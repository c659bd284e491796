"""Pods as kubectl shows, labels and deletes them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.mark.spec("KA-10.14")
async def test_a_new_pod_is_pending(site: "Site") -> None:
    assert await site.prints("create", "-f", "-", stdin=[site.pod_document()]) == "pod/p1 created\n"
    header, row = await site.rows("get", "pods")
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["p1", "0/1", "Pending", "0"]


@pytest.mark.spec("KA-10.15")
async def test_a_pod_has_its_defaults(site: "Site") -> None:
    site.created("pods", site.pod_document())
    fields = "{.spec.schedulerName},{.spec.restartPolicy},{.status.phase},{.status.qosClass}"
    shown = await site.prints("get", "pod", "p1", "-o", f"jsonpath={fields}")
    assert shown == "default-scheduler,Always,Pending,BestEffort"


@pytest.mark.spec("KA-10.16")
async def test_the_wide_columns_of_a_pod_without_a_node_are_empty(site: "Site") -> None:
    site.created("pods", site.pod_document())
    header, row = (await site.prints("get", "pod", "p1", "-o", "wide")).splitlines()
    assert header.split()[5:] == ["IP", "NODE", "NOMINATED", "NODE", "READINESS", "GATES"]
    assert row.split()[5:] == ["<none>"] * 4


@pytest.mark.spec("KA-10.17")
async def test_several_kinds_are_shown_in_blocks_with_prefixed_names(site: "Site") -> None:
    await site.prints("create", "-f", "-", stdin=[*site.base(), site.pod_document()])
    blocks = (await site.prints("get", "pods,nodes,resourceslices")).split("\n\n")
    assert [block.split()[0] for block in blocks] == ["NAME"] * 3
    assert "pod/p1 " in blocks[0]
    assert f"node/{site.node} " in blocks[1]
    assert f"resourceslice.resource.k8s.io/slice-{site.word} " in blocks[2]


@pytest.mark.spec("KA-10.32")
@pytest.mark.spec("KA-10.33")
async def test_the_status_changes_through_its_subresource_alone(site: "Site") -> None:
    site.created("pods", site.pod_document())
    running = ("--type=merge", "-p", '{"status":{"phase":"Running"}}')
    assert await site.prints("patch", "pod", "p1", "--subresource=status", *running) == "pod/p1 patched\n"
    assert (await site.rows("get", "pod", "p1"))[1][2] == "Running"
    failed = ("--type=merge", "-p", '{"status":{"phase":"Failed"}}')
    assert await site.prints("patch", "pod", "p1", *failed) == "pod/p1 patched (no change)\n"
    assert (await site.rows("get", "pod", "p1"))[1][2] == "Running"


@pytest.mark.spec("KA-10.34")
async def test_the_spec_does_not_change(site: "Site") -> None:
    site.created("pods", site.pod_document())
    text = await site.fails("patch", "pod", "p1", "--type=merge", "-p", '{"spec":{"schedulerName":"x"}}')
    assert text.startswith('The Pod "p1" is invalid: spec: Forbidden: pod updates may not change fields other than ')


@pytest.mark.spec("KA-10.35")
async def test_a_label_is_overwritten_only_when_asked_for(site: "Site") -> None:
    site.created("pods", site.pod_document())
    assert await site.prints("label", "pod", "p1", "x=y") == "pod/p1 labeled\n"
    assert "'x' already has a value (y)" in await site.fails("label", "pod", "p1", "x=z")
    assert await site.prints("label", "--overwrite", "pod", "p1", "x=z") == "pod/p1 labeled\n"
    assert site.get("pods", "p1").document["metadata"]["labels"] == {"app": "a", "x": "z"}


@pytest.mark.spec("KA-10.36")
async def test_a_pod_is_annotated(site: "Site") -> None:
    site.created("pods", site.pod_document())
    assert await site.prints("annotate", "pod", "p1", "n=1") == "pod/p1 annotated\n"
    assert site.get("pods", "p1").document["metadata"]["annotations"]["n"] == "1"


@pytest.mark.spec("KA-10.37")
async def test_pods_are_selected_by_label(site: "Site") -> None:
    site.created("pods", site.pod_document())
    assert await site.prints("get", "pods", "-l", "app in (a,b),!zz", "-o", "name") == "pod/p1\n"
    done = await site.kubectl("get", "pods", "-l", "app!=a")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"No resources found in {site.namespace} namespace.\n"


@pytest.mark.spec("KA-10.38")
async def test_pods_are_selected_by_phase_and_node(site: "Site") -> None:
    site.created("pods", site.pod_document())
    site.patch("pods", "p1", {"status": {"phase": "Running"}}, sub="status")
    selector = "--field-selector=status.phase=Running,spec.nodeName="
    assert await site.prints("get", "pods", selector, "-o", "name") == "pod/p1\n"


@pytest.mark.spec("KA-10.39")
async def test_a_list_of_pods_has_versions(site: "Site") -> None:
    site.created("pods", site.pod_document())
    items = json.loads(await site.prints("get", "pods", "-o", "json"))["items"]
    assert [item["kind"] for item in items] == ["Pod"]
    assert int(items[0]["metadata"]["resourceVersion"]) > 0


@pytest.mark.spec("KA-10.40")
async def test_a_change_shows_while_kubectl_watches(site: "Site", tmp_path: Path) -> None:
    site.created("pods", site.pod_document())
    log = tmp_path / "kubectl.log"
    async with site.running_kubectl(log, "get", "pods", "-w"):
        site.eventually(lambda: lines(log) == ["NAME", "p1"])
        await site.prints("annotate", "pod", "p1", "t=2")
        site.eventually(lambda: lines(log) == ["NAME", "p1", "p1"])
        assert lines(log) == ["NAME", "p1", "p1"]


@pytest.mark.spec("KA-10.41")
@pytest.mark.spec("KA-10.42")
async def test_kubectl_waits_for_what_is_so_and_not_for_ever(site: "Site") -> None:
    site.created("pods", site.pod_document())
    site.patch("pods", "p1", {"status": {"phase": "Running"}}, sub="status")
    met = await site.prints("wait", "pod/p1", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    assert met == "pod/p1 condition met\n"
    late = await site.fails("wait", "pod/p1", "--for=condition=Ready", "--timeout=1s")
    assert late == "error: timed out waiting for the condition on pods/p1\n"


@pytest.mark.spec("KA-10.43")
async def test_a_pod_and_its_slice_are_described(site: "Site") -> None:
    await site.prints("create", "-f", "-", stdin=[*site.base(), site.pod_document()])
    described = await site.prints("describe", "pod", "p1")
    assert described.startswith("Name:             p1\n")
    assert "Status:           Pending\n" in described
    sliced = await site.prints("describe", "resourceslice", f"slice-{site.word}")
    assert {f"  Driver:     {site.driver}", f"  Node Name:  {site.node}"} <= set(sliced.splitlines())


@pytest.mark.spec("KA-10.51")
async def test_a_pod_without_a_node_is_deleted_at_once(site: "Site") -> None:
    assert await site.prints("run", "p2", "--image=busybox", "--restart=Never") == "pod/p2 created\n"
    assert (await site.prints("delete", "pod", "p2")).startswith('pod "p2" deleted')
    assert site.get("pods", "p2").code == 404


@pytest.mark.spec("KA-10.59")
async def test_a_pod_has_containers(site: "Site") -> None:
    answer = site.create("pods", {"metadata": {"name": "empty"}, "spec": {}})
    assert answer.summary == "422 Invalid"
    assert (answer.causes[0]["field"], answer.causes[0]["reason"]) == ("spec.containers", "FieldValueRequired")


@pytest.mark.spec("KA-10.72")
async def test_a_pod_is_bound_once(site: "Site") -> None:
    site.created("pods", site.pod_document(claim=False))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p1"}}
    target = {"kind": "Node", "name": site.node}
    first = site.create("pods", binding | {"target": target}, "p1", "binding")
    assert (first.code, first.document["kind"], first.document["status"]) == (201, "Status", "Success")
    bound = site.get("pods", "p1").document
    assert bound["spec"]["nodeName"] == site.node
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    second = site.create("pods", binding | {"target": target | {"name": "other"}}, "p1", "binding")
    assert second.summary == "409 Conflict"
    assert second.document["details"]["kind"] == "pods/binding"
    assert f'pod p1 is already assigned to node "{site.node}"' in second.document["message"]


@pytest.mark.spec("KA-10.73")
async def test_an_evicted_pod_says_so_and_ends_gracefully(site: "Site") -> None:
    site.bound_pod()
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1"}}
    assert site.create("pods", eviction, "p1", "eviction").code == 201
    pod = site.get("pods", "p1").document
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    target = next(c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")


@pytest.mark.spec("KA-10.74")
async def test_the_grace_of_a_deletion_only_shrinks(site: "Site") -> None:
    site.bound_pod()

    def grace(options: dict[str, int]) -> int:
        answer = site.delete("pods", "p1", options or None)
        assert answer.code == 200
        return int(answer.document["metadata"]["deletionGracePeriodSeconds"])

    assert grace({}) == 30
    assert grace({"gracePeriodSeconds": 5}) == 5
    assert grace({"gracePeriodSeconds": 50}) == 5
    assert grace({"gracePeriodSeconds": 0}) == 0
    assert site.get("pods", "p1").code == 404


def lines(log: Path) -> list[str]:
    """The first word of each line."""
    return [line.split()[0] for line in log.read_text().splitlines()]
