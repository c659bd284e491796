from typing import Any

import pytest

from devlet.auth.node_restriction import new_pod_refusal
from devlet.objects.documents import Document

OWNER: Document = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u", "controller": True}
MIRROR = {"kubernetes.io/config.mirror": "hash"}


def mirror(*owners: Document, annotations: Document = MIRROR, **spec: Any) -> Document:
    metadata = {"name": "web-n1", "annotations": annotations, "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], **spec}}


def test_a_mirror_of_the_nodes_own_static_pod_may_be_created() -> None:
    assert new_pod_refusal("n1", "u", mirror(OWNER)) is None
    assert new_pod_refusal("n1", "u", mirror(OWNER | {"blockOwnerDeletion": False})) is None


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (
            mirror(OWNER, annotations={"a": "b"}),
            'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
        ),
        (mirror(OWNER, nodeName="n2"), 'node "n1" can only create pods with spec.nodeName set to itself'),
        (mirror(OWNER, nodeName=None), 'node "n1" can only create pods with spec.nodeName set to itself'),
        (mirror(OWNER, OWNER), 'node "n1" can only create pods with a single owner reference set to itself'),
        (mirror(), 'node "n1" can only create pods with an owner reference set to itself'),
        (mirror(OWNER | {"name": "n2"}), 'node "n1" can only create pods with an owner reference set to itself'),
        (mirror(OWNER | {"kind": "Pod"}), 'node "n1" can only create pods with an owner reference set to itself'),
        (
            mirror(OWNER | {"apiVersion": "v2"}),
            'node "n1" can only create pods with an owner reference set to itself',
        ),
        (
            mirror(OWNER | {"controller": False}),
            'node "n1" can only create pods with a controller owner reference set to itself',
        ),
        (
            mirror(OWNER | {"blockOwnerDeletion": True}),
            'node "n1" must not set blockOwnerDeletion on an owner reference',
        ),
        (mirror(OWNER | {"uid": "before"}), "node n1 UID mismatch: expected before got u"),
    ],
)
def test_a_pod_of_another_node_or_owner_is_refused(pod: Document, text: str) -> None:
    assert new_pod_refusal("n1", "u", pod) == text


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({"serviceAccountName": "default"}, "serviceaccounts"),
        ({"imagePullSecrets": [{"name": "x"}]}, "secrets"),
        ({"volumes": [{"name": "v", "configMap": {"name": "x"}}]}, "configmaps (via configmap volumes)"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}, "persistentvolumeclaims"),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "theirs"}]}, "resourceclaims"),
    ],
)
def test_a_mirror_pod_refers_to_no_object_that_the_node_could_then_read(spec: Document, kind: str) -> None:
    assert new_pod_refusal("n1", "u", mirror(OWNER, **spec)) == f'node "n1" can not create pods that reference {kind}'
