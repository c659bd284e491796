"""Views of nodes."""

from devlet.objects.documents import view
from devlet.objects.types.node import Node, NodeSelector


def test_a_node_says_what_it_has_and_how_it_is() -> None:
    node = view(
        Node,
        {
            "metadata": {"name": "n1"},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
            "status": {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
        },
    )
    assert node.name == "n1"
    assert node.spec.taints[0].effect == "NoSchedule"
    assert node.spec.pod_cidr == "10.0.0.0/24"
    assert node.status.capacity == {"cpu": "4"}
    assert node.status.conditions[0].status == "True"


def test_a_selector_without_terms_may_be_null() -> None:
    assert view(NodeSelector, {"nodeSelectorTerms": None}).node_selector_terms == ()
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    assert view(NodeSelector, {"nodeSelectorTerms": terms}).node_selector_terms[0].match_fields[0].values == ("n1",)
