from typing import Any

from devlet.objects.kind_rules import Rules, validate_create
from devlet.objects.validation.field_errors import too_many
from devlet.objects.validation.role import WORDS_MAX


def role(kind: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    metadata = {"name": "r"} | ({"namespace": "n"} if kind == "Role" else {})
    return {"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata, "rules": rules}


def test_the_words_of_all_rules_of_a_role_are_limited() -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes"]}
    for kind in ("Role", "ClusterRole"):
        assert validate_create(role(kind, [rule] * (WORDS_MAX // 4)), Rules()) == []
        causes = validate_create(role(kind, [rule] * (WORDS_MAX // 4 + 1)), Rules())
        assert causes == [too_many("rules", WORDS_MAX + 4, WORDS_MAX)]


def test_a_rule_without_words_counts() -> None:
    assert validate_create(role("ClusterRole", [{}] * WORDS_MAX), Rules()) == []
    assert validate_create(role("ClusterRole", [{}] * (WORDS_MAX + 1)), Rules())
