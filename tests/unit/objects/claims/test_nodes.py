"""On which nodes the devices of a claim can be used."""

import pytest

from devlet.errors import InvalidInput
from devlet.objects.claims.nodes import is_usable_on, unusable_on
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ResourceClaim

BY_NAME: Document = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
BY_LABEL: Document = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
BROKEN: Document = {"matchExpressions": [{"key": "zone", "operator": "Near"}]}


def claim(allocation: Document | None) -> ResourceClaim:
    status = {"allocation": allocation} if allocation is not None else {}
    return view(ResourceClaim, {"metadata": {"name": "c", "namespace": "ns"}, "status": status})


def selecting(*terms: Document) -> ResourceClaim:
    return claim({"nodeSelector": {"nodeSelectorTerms": list(terms)}})


@pytest.mark.spec("DA-5.4a")
def test_allocated_devices_can_be_used_where_their_node_selector_says() -> None:
    assert is_usable_on(claim(None), "n1", {})
    assert is_usable_on(claim({}), "n1", {})
    assert is_usable_on(selecting(BY_NAME), "n1", {})
    assert not is_usable_on(selecting(BY_NAME), "n2", {})
    assert is_usable_on(selecting(BY_NAME, BY_LABEL), "n2", {"zone": "a"})
    assert not is_usable_on(selecting(), "n1", {})


def test_without_labels_only_the_name_is_compared() -> None:
    assert is_usable_on(selecting(BY_LABEL), "n1", None)
    assert is_usable_on(selecting(BY_NAME | BY_LABEL), "n1", None)
    assert not is_usable_on(selecting(BY_NAME | BY_LABEL), "n2", None)


def test_an_invalid_node_selector_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"status\.allocation\.nodeSelector\.nodeSelectorTerms\[0\]"):
        is_usable_on(selecting(BROKEN), "n1", {})
    assert unusable_on(selecting(BROKEN), "n1", {}).startswith("ResourceClaim c: status.allocation.nodeSelector")


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ([BY_NAME], "metadata.name In [n1]"),
        ([BY_NAME | BY_LABEL], "metadata.name In [n1] and zone In [a, b]"),
        ([BY_NAME, BY_LABEL], "metadata.name In [n1] or zone In [a, b]"),
        ([{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}], "gpu Exists"),
        ([], "a node selector without terms"),
        ([{}], "a term without requirements"),
    ],
)
def test_the_reason_names_claim_node_and_what_the_allocation_requires(terms: list[Document], text: str) -> None:
    reason = unusable_on(selecting(*terms), "n2", {})
    assert reason == f"the devices of ResourceClaim c cannot be used on node n2: its allocation requires {text}"
    assert unusable_on(selecting(BY_NAME), "n1", {}) == ""
