import pytest

from devlet.auth.rules import Attributes, Rule, rule_of


def pods(verb: str = "get", namespace: str = "ns", subresource: str = "", name: str = "p") -> Attributes:
    return Attributes(verb, version="v1", resource="pods", subresource=subresource, namespace=namespace, name=name)


def test_a_request_is_for_a_resource_or_for_a_path() -> None:
    assert Attributes("get", resource="pods").is_resource
    assert not Attributes("get", path="/version").is_resource


@pytest.mark.parametrize(
    ("rule", "wanted", "allowed"),
    [
        (Rule(("get",), ("",), ("pods",)), pods(), True),
        (Rule(("get",), ("",), ("pods",)), pods("list"), False),
        (Rule(("*",), ("",), ("pods",)), pods("associated-node:patch"), True),
        (Rule(("get",), ("apps",), ("pods",)), pods(), False),
        (Rule(("get",), ("*",), ("*",)), pods(), True),
        (Rule(("get",), ("",), ("pods",)), pods(subresource="status"), False),
        (Rule(("get",), ("",), ("pods/status",)), pods(subresource="status"), True),
        (Rule(("get",), ("",), ("pods/status",)), pods(), False),
        (Rule(("get",), ("",), ("*/status",)), pods(subresource="status"), True),
        (Rule(("get",), ("",), ("*/status",)), pods(subresource="log"), False),
        (Rule(("get",), ("",), ("*",)), pods(subresource="status"), True),
        (Rule(("get",), ("",), ("pods",), ("p", "q")), pods(), True),
        (Rule(("get",), ("",), ("pods",), ("q",)), pods(), False),
        (Rule(("get",), ("",), ("pods",), ("q",)), pods(name=""), False),
        (Rule(("get",), ("",), ("*",), but=("pods",)), pods(), False),
        (Rule(("get",), ("",), ("*",), but=("pods",)), pods(subresource="status"), False),
        (Rule(("get",), urls=("*",)), pods(), False),
        (Rule(("get",), ("*",), ("*",)), Attributes("get", path="/metrics"), False),
        (Rule(("get",), urls=("/metrics",)), Attributes("get", path="/metrics"), True),
        (Rule(("get",), urls=("/metrics",)), Attributes("get", path="/metrics/x"), False),
        (Rule(("get",), urls=("/metrics/*",)), Attributes("get", path="/metrics/x"), True),
        (Rule(("get",), urls=("/metrics/*",)), Attributes("get", path="/metrics"), False),
        (Rule(("get",), urls=("*",)), Attributes("post", path="/metrics"), False),
    ],
)
def test_a_rule_allows_what_it_lists(rule: Rule, wanted: Attributes, allowed: bool) -> None:
    assert rule.allows(wanted) is allowed


def test_a_rule_is_read_from_its_document() -> None:
    document = {
        "verbs": ["get", 1],
        "apiGroups": [""],
        "resources": ["pods"],
        "resourceNames": ["p"],
        "nonResourceURLs": None,
    }
    assert rule_of(document) == Rule(("get",), ("",), ("pods",), ("p",))
