from typing import Any

import pytest

from devlet.control.scheduler.node_choice import of_pod
from devlet.errors import InvalidInput
from devlet.objects.documents import Document, view
from devlet.objects.types.pod import Pod

GIVEN = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
]


def pod(**spec: Any) -> Pod:
    return view(Pod, {"metadata": {"name": "p"}, "spec": spec})


def affinity(required: list[Document] | None = None, preferred: list[Document] | None = None) -> Document:
    terms: Document = {"preferredDuringSchedulingIgnoredDuringExecution": preferred or []}
    if required is not None:
        terms["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    return {"nodeAffinity": terms}


def term(key: str, operator: str, *values: str) -> Document:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_equal_pods_share_one_choice() -> None:
    spec: Document = {"nodeSelector": {"a": "b"}, "affinity": affinity([term("zone", "In", "x")])}
    assert of_pod(pod(**spec)) is of_pod(pod(**spec))
    assert of_pod(pod(**spec)) is not of_pod(pod())


def test_a_preference_without_weight_or_requirements_prefers_nothing() -> None:
    preferred = [{"weight": 0, "preference": term("zone", "Exists")}, {"weight": 5, "preference": {}}]
    assert of_pod(pod(affinity=affinity(preferred=preferred))).preferred == ()


def test_an_error_names_the_term() -> None:
    where = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1]"
    with pytest.raises(InvalidInput) as e:
        of_pod(pod(affinity=affinity([term("zone", "Exists"), term("zone", "Near", "x")])))
    assert str(e.value).startswith(f"{where}.matchExpressions[0].operator")
    with pytest.raises(InvalidInput) as e:
        of_pod(pod(affinity=affinity(preferred=[{"weight": 1, "preference": term("zone", "Near", "x")}])))
    preferred = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference"
    assert str(e.value).startswith(f"{preferred}.matchExpressions[0].operator")


def test_a_pod_that_tolerates_the_cordon_taint_may_run_on_a_cordoned_node() -> None:
    assert not of_pod(pod(tolerations=GIVEN)).ignores_cordon
    assert of_pod(pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])).ignores_cordon
    assert of_pod(pod(tolerations=[{"operator": "Exists"}])).ignores_cordon
