"""Defaults of volumes."""

import pytest

from devlet.objects.defaults.volume import default_field_selectors, default_volume
from devlet.objects.documents import Document


@pytest.mark.spec("KA-7.1")
@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"name": "v"}, {"name": "v", "emptyDir": {}}),
        ({"name": "v", "secret": None}, {"name": "v", "secret": None, "emptyDir": {}}),
        ({"name": "v", "emptyDir": {"medium": "Memory"}}, {"name": "v", "emptyDir": {"medium": "Memory"}}),
        ({"hostPath": {"path": "/dev"}}, {"hostPath": {"path": "/dev", "type": ""}}),
        ({"hostPath": {"path": "/dev", "type": "File"}}, {"hostPath": {"path": "/dev", "type": "File"}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"secret": {"defaultMode": 0}}, {"secret": {"defaultMode": 0}}),
        ({"configMap": {}}, {"configMap": {"defaultMode": 420}}),
        ({"iscsi": {"iscsiInterface": ""}}, {"iscsi": {"iscsiInterface": "default"}}),
        ({"image": {"reference": "a:1"}}, {"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}}),
        (
            {"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "metadata.name"}}]}},
            {
                "downwardAPI": {
                    "defaultMode": 420,
                    "items": [{"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}],
                }
            },
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}, {"downwardAPI": {"items": [{}]}}]}},
            {
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                        {"downwardAPI": {"items": [{}]}},
                    ],
                }
            },
        ),
        (
            {"ephemeral": {"volumeClaimTemplate": {}}},
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}},
        ),
        ({"csi": "wrong"}, {"csi": "wrong"}),
    ],
)
def test_a_volume_gets_the_defaults_of_its_source(volume: Document, expected: Document) -> None:
    default_volume(volume)
    assert volume == expected


@pytest.mark.spec("KA-7.1")
def test_selectors_of_fields_and_resources_are_completed() -> None:
    parent: Document = {"items": [{"fieldRef": {}}, {"resourceFieldRef": {"resource": "limits.cpu"}}, "wrong"]}
    default_field_selectors(parent, "items")
    assert parent["items"][0] == {"fieldRef": {"apiVersion": "v1"}}
    assert parent["items"][1] == {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}
