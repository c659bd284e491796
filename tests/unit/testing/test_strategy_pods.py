"""That the API accepts them is tested with `strategies`; here, what else is promised."""

from hypothesis import given

from devlet.objects.documents import Document
from devlet.testing import strategy_pods as own


@given(pod=own.pods(name="mine", claims=[], templates=[], resources=[], node="n1", max_containers=1))
def test_a_pod_can_be_told_to_use_nothing(pod: Document) -> None:
    assert (pod["metadata"]["name"], pod["spec"]["nodeName"]) == ("mine", "n1")
    assert "resourceClaims" not in pod["spec"]
    (container,) = pod["spec"]["containers"]
    assert container.get("resources", {}).get("limits", {}).keys() <= {"cpu", "memory"}


@given(pod=own.pods())
def test_containers_use_entries_that_the_pod_has(pod: Document) -> None:
    entries = {each["name"] for each in pod["spec"].get("resourceClaims", ())}
    used = [each.get("resources", {}).get("claims", []) for each in pod["spec"]["containers"]]
    assert {entry["name"] for claims in used for entry in claims} <= entries


@given(node=own.nodes(name="n1"))
def test_all_that_a_node_has_can_be_allocated(node: Document) -> None:
    assert node["metadata"]["name"] == "n1"
    assert node["status"]["capacity"] == node["status"]["allocatable"]
