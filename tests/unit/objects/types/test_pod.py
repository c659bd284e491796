"""Views of pods."""

import pytest

from devlet.objects.documents import view
from devlet.objects.types.pod import Pod


def test_a_pod_without_anything_can_be_read() -> None:
    pod = view(Pod, {"metadata": {}, "spec": {"containers": None}, "status": {}})
    assert pod.spec.containers == ()
    assert pod.status.extended_resource_claim_status is None


def test_a_pod_is_known_by_its_uid() -> None:
    pod = view(Pod, {"metadata": {"name": "p", "uid": "u"}})
    assert (pod.name, pod.uid) == ("p", "u")


def test_init_containers_come_before_the_others() -> None:
    spec = {"containers": [{"name": "c"}], "initContainers": [{"name": "b"}, {"name": "a"}]}
    pod = view(Pod, {"spec": spec | {"ephemeralContainers": [{"name": "d"}]}})
    assert [container.name for container in pod.containers] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("phase", "finished"), [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_a_pod_is_finished_when_it_succeeded_or_failed(phase: str, finished: bool) -> None:
    assert view(Pod, {"status": {"phase": phase}}).is_finished is finished


@pytest.mark.spec("AL-1.8")
def test_a_pod_says_which_claims_it_uses_and_which_were_made() -> None:
    pod = view(
        Pod,
        {
            "spec": {
                "resourceClaims": [
                    {"name": "a", "resourceClaimName": "shared"},
                    {"name": "b", "resourceClaimTemplateName": "template"},
                ],
                "schedulingGroup": {"podGroupName": "group"},
            },
            "status": {
                "resourceClaimStatuses": [{"name": "b", "resourceClaimName": None}],
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "extended",
                    "requestMappings": [{"containerName": "c", "resourceName": "r", "requestName": "q"}],
                },
                "nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "a", "resources": {"cpu": "1"}}],
            },
        },
    )
    assert [entry.resource_claim_name for entry in pod.spec.resource_claims] == ["shared", None]
    assert pod.status.resource_claim_statuses[0].resource_claim_name is None
    assert pod.status.extended_resource_claim_status is not None
    assert pod.status.extended_resource_claim_status.request_mappings[0].request_name == "q"
    assert pod.status.node_allocatable_resource_claim_statuses[0].resources == {"cpu": "1"}
    assert pod.spec.scheduling_group is not None


def test_affinity_to_nodes_and_pods_is_read() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
    }
    pod = view(Pod, {"spec": {"affinity": affinity}})
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    assert pod.spec.affinity.node_affinity.required is not None
    assert pod.spec.affinity.node_affinity.required.node_selector_terms[0].match_expressions[0].operator == "Exists"
    assert pod.spec.affinity.pod_affinity is not None
    assert pod.spec.affinity.pod_affinity.required[0].topology_key == "zone"
