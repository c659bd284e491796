import pytest

from devlet.objects.documents import Document, view
from devlet.objects.pods.restarts import is_restarted
from devlet.objects.types.pod import Pod


def rule(operator: str, *values: int, action: str = "Restart") -> Document:
    return {"action": action, "exitCodes": {"operator": operator, "values": list(values)}}


def restarted(policy: str, code: int, **container: object) -> bool:
    spec = {"restartPolicy": policy, "containers": [{"name": "a", **container}]}
    pod = view(Pod, {"spec": spec})
    return is_restarted(pod, pod.spec.containers[0], code)


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Always", 0, True), ("Always", 1, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_a_containers_own_policy_counts_before_the_pods(policy: str, code: int, again: bool) -> None:
    assert restarted(policy, code) is again
    for other in ("Always", "OnFailure", "Never"):
        assert restarted(other, code, restartPolicy=policy) is again


@pytest.mark.parametrize(
    ("rules", "code", "again"),
    [
        ([rule("In", 42, 43)], 42, True),
        ([rule("In", 42, 43)], 1, False),
        ([rule("NotIn", 0, 1)], 2, True),
        ([rule("NotIn", 0, 1)], 1, False),
        ([rule("In", 1), rule("In", 2)], 2, True),
        ([rule("In", 2, action="RestartAllContainers"), rule("In", 2)], 2, False),
        ([{"action": "Restart"}], 2, False),
    ],
)
def test_the_first_rule_that_matches_the_exit_code_decides(rules: list[Document], code: int, again: bool) -> None:
    assert restarted("Never", code, restartPolicy="Never", restartPolicyRules=rules) is again


def test_rules_need_a_policy_beside_them() -> None:
    assert restarted("Never", 42, restartPolicyRules=[rule("In", 42)]) is False
