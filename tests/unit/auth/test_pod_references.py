from typing import Any

import pytest

from devlet.auth.pod_references import referenced

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {
        "serviceAccountName": "sa",
        "imagePullSecrets": [{"name": "pull"}],
        "resourceClaims": [{"name": "a", "resourceClaimName": "direct"}, {"name": "b"}],
        "volumes": [
            {"name": "v1", "secret": {"secretName": "s-volume"}},
            {"name": "v2", "configMap": {"name": "c-volume"}},
            {"name": "v3", "persistentVolumeClaim": {"claimName": "disk"}},
            {"name": "v4", "projected": {"sources": [{"secret": {"name": "s-in"}}, {"configMap": {"name": "c-in"}}]}},
        ],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "s-all"}}, {"configMapRef": {"name": "c-all"}}]}],
        "containers": [
            {
                "env": [
                    {"name": "A", "value": "x"},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s-one", "key": "k"}}},
                    {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c-one", "key": "k"}}},
                ]
            }
        ],
    },
    "status": {
        "resourceClaimStatuses": [{"name": "b", "resourceClaimName": "made"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
    },
}


@pytest.mark.parametrize(
    ("plural", "names"),
    [
        ("resourceclaims", {"direct", "made", "extended"}),
        ("secrets", {"pull", "s-volume", "s-in", "s-all", "s-one"}),
        ("configmaps", {"c-volume", "c-in", "c-all", "c-one"}),
        ("persistentvolumeclaims", {"disk"}),
        ("serviceaccounts", {"sa"}),
        ("nodes", set()),
    ],
)
def test_a_pod_refers_to_what_it_uses(plural: str, names: set[str]) -> None:
    assert referenced(POD, plural) == names


@pytest.mark.parametrize("plural", ["resourceclaims", "secrets", "configmaps", "persistentvolumeclaims"])
@pytest.mark.parametrize(
    "pod", [{}, {"spec": None}, {"spec": {"volumes": 1, "containers": [None], "resourceClaims": [1]}}]
)
def test_an_empty_pod_refers_to_nothing(pod: dict[str, Any], plural: str) -> None:
    assert referenced(pod, plural) == set()
