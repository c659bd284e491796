from typing import Any

import pytest

from devlet.objects.pods.references import first


def container(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", **more}]}


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({"serviceAccountName": "x"}, "serviceaccounts"),
        ({"imagePullSecrets": [{"name": "x"}]}, "secrets"),
        (container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x"}}}]), "secrets"),
        (container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x"}}}]), "configmaps"),
        (container(envFrom=[{"configMapRef": {"name": "x"}}]), "configmaps"),
        ({"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]}, "secrets"),
        ({"resourceClaims": [{"name": "x"}]}, "resourceclaims"),
        ({"volumes": [{"name": "v", "secret": {}}]}, "secrets (via secret volumes)"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}, "persistentvolumeclaims"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "p"}}]}}]},
            "serviceaccounts (via projected volumes)",
        ),
    ],
)
def test_references_to_objects_of_the_cluster_are_named(spec: dict[str, Any], kind: str) -> None:
    assert first(spec) == kind


def test_objects_of_the_node_are_not_references() -> None:
    volumes = [{"name": "a", "hostPath": {"path": "/x"}}, {"name": "b", "emptyDir": {}}]
    projected = {"name": "c", "projected": {"sources": [{"downwardAPI": {}}]}}
    env = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    assert first({**container(env=env), "volumes": [*volumes, projected]}) == ""
