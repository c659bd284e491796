"""One valid document of the kinds that devlet acts upon, by kind."""

from typing import Any

from devlet.objects.documents import Document

_REQUEST = {"name": "r", "exactly": {"deviceClassName": "a", "count": 1}}
_SCHEMA: Document = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
}


def _kind(**members: Any) -> Document:
    return {"metadata": {"labels": {"a": "b"}}, **members}


SPECIMENS: dict[str, Document] = {
    "Pod": _kind(
        spec={
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {"limits": {"example.com/x": "1"}, "claims": [{"name": "gpu"}]},
                }
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "a"}],
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
            "nodeSelector": {"a": "b"},
        }
    ),
    "Node": _kind(
        spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}, status={"capacity": {"cpu": "1"}, "conditions": []}
    ),
    "ConfigMap": _kind(data={"k": "v"}),
    "Secret": _kind(type="Opaque", data={"k": "YQ=="}, stringData={"s": "t"}),
    "Namespace": _kind(spec={"finalizers": ["kubernetes"]}),
    "ServiceAccount": _kind(secrets=[{"name": "a"}]),
    "Lease": _kind(spec={"holderIdentity": "a", "leaseDurationSeconds": 5, "renewTime": "2026-01-01T00:00:00.000000Z"}),
    "PriorityClass": _kind(value=5, description="d"),
    "DeviceClass": _kind(spec={"selectors": [{"cel": {"expression": 'device.driver == "a.example.com"'}}]}),
    "ResourceSlice": _kind(
        spec={
            "driver": "a.example.com",
            "nodeName": "a",
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"d{i}", "attributes": {"n": {"int": i}}, "capacity": {"m": {"value": "1Gi"}}}
                for i in range(9)
            ],
        }
    ),
    "ResourceClaim": _kind(spec={"devices": {"requests": [_REQUEST], "config": []}}),
    "ResourceClaimTemplate": _kind(spec={"spec": {"devices": {"requests": [_REQUEST]}}}),
    "DeviceTaintRule": _kind(
        spec={"deviceSelector": {"driver": "a.example.com"}, "taint": {"key": "a", "effect": "NoExecute"}}
    ),
    "PodDisruptionBudget": _kind(spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}),
    "Role": _kind(rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    "RoleBinding": _kind(
        subjects=[{"kind": "User", "name": "a"}],
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
    ),
    "Event": _kind(
        involvedObject={"kind": "Pod", "name": "a", "namespace": "default"}, reason="R", message="m", count=1
    ),
    "CustomResourceDefinition": {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["w"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _SCHEMA},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "A", "type": "integer", "jsonPath": ".spec.a"}],
                }
            ],
        },
    },
    "Widget": _kind(spec={"a": "b", "list": [1, 2.5, None]}, status={"ok": True}),
}
