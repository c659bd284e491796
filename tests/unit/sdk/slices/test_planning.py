"""The plan for a pool, and that carrying it out leads to where it should."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.documents import Document
from devlet.sdk.slices import names
from devlet.sdk.slices.planning import Author, Plan, Write, generation_of, plan
from devlet.sdk.slices.resources import WantedPool

AUTHOR = Author("gpu.example.com", "node", "uid-1", "node")


def content(*devices: str) -> Document:
    return {"devices": [{"name": name} for name in devices]} if devices else {}


def pool(*slices: Document, generation: int = 0) -> WantedPool:
    return WantedPool("p", slices, generation)


def existing(name: str, generation: int, count: int, what: Document) -> Document:
    numbers = {"name": "p", "generation": generation, "resourceSliceCount": count}
    return {
        "metadata": {"name": name, "uid": f"uid of {name}", "resourceVersion": "1"},
        "spec": {"driver": "gpu.example.com", "nodeName": "node", "pool": numbers, **what},
    }


def indexed(generation: int, *contents: Document, count: int = 0) -> list[Document]:
    count = count or len(contents)
    return [existing(f"{i:05x}-d-node-abcd{i}", generation, count, what) for i, what in enumerate(contents)]


def shape(found: Plan) -> tuple[int, int, int, int]:
    """Deletes, updates, creates, generation."""
    return len(found.deletes), len(found.updates), len(found.creates), found.generation


def planned(wanted: WantedPool, actual: Sequence[Document]) -> tuple[int, int, int, int]:
    return shape(plan(wanted, actual, AUTHOR))


@pytest.mark.spec("DN-10.P01")
@pytest.mark.spec("DN-6.4e")
def test_the_first_publication_of_an_empty_slice_creates_generation_1() -> None:
    (write,) = plan(pool({}), [], AUTHOR).creates
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node", "uid": "uid-1", "controller": True}
    assert write == Write(
        0,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"generateName": "00000-gpu.example.com-node-", "ownerReferences": [owner]},
            "spec": {
                "driver": "gpu.example.com",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "nodeName": "node",
            },
        },
    )


@pytest.mark.spec("DN-10.P14")
def test_without_an_owner_there_is_no_reference_and_no_node() -> None:
    (write,) = plan(pool({"allNodes": True}), [], Author("d")).creates
    assert write.document["metadata"] == {"generateName": "00000-d-"}
    assert "nodeName" not in write.document["spec"] and write.document["spec"]["allNodes"] is True


@pytest.mark.spec("DN-10.P02")
def test_nothing_is_done_if_all_is_as_wanted() -> None:
    assert planned(pool(content("a"), content("b")), indexed(3, content("a"), content("b"))) == (0, 0, 0, 3)


@pytest.mark.spec("DN-10.P03")
def test_one_slice_is_changed_in_place_and_keeps_its_generation() -> None:
    old = indexed(1, content("a"))
    found = plan(pool(content("b")), old, AUTHOR)
    assert shape(found) == (0, 1, 0, 1)
    assert found.updates[0].document["metadata"] == old[0]["metadata"]
    assert found.updates[0].document["spec"]["nodeName"] == "node"


@pytest.mark.spec("DN-10.P04")
@pytest.mark.parametrize("count", [2, 3])
def test_one_of_several_slices_is_changed_without_a_new_generation(count: int) -> None:
    old = [content(f"d{i}") for i in range(count)]
    assert planned(pool(content("new"), *old[1:]), indexed(4, *old)) == (0, 1, 0, 4)


@pytest.mark.spec("DN-10.P05")
def test_a_surplus_slice_is_deleted_and_nothing_else() -> None:
    old = [*indexed(1, content("a"), content("b")), existing("00001-z", 1, 2, content("b"))]
    found = plan(pool(content("a"), content("b")), old, AUTHOR)
    assert shape(found) == (1, 0, 0, 1) and found.deletes[0]["metadata"]["name"] == "00001-z"


@pytest.mark.spec("DN-10.P06")
def test_slices_of_mixed_generations_with_other_names_are_replaced() -> None:
    old = [existing(f"d-node-{i}", generation, 3, {}) for i, generation in enumerate((1, 2, 1))]
    assert planned(pool(content("a")), old) == (3, 0, 1, 3)


@pytest.mark.spec("DN-10.P07")
def test_two_changes_of_three_update_all_in_a_new_generation() -> None:
    old = indexed(1, content("a"), content("b"), content("c"))
    assert planned(pool(content("x"), content("y"), content("c")), old) == (0, 3, 0, 2)


@pytest.mark.spec("DN-10.P08")
def test_one_slice_less_deletes_it_and_updates_the_others() -> None:
    old = indexed(1, content("a"), content("b"), content("c"))
    found = plan(pool(content("a"), content("b")), old, AUTHOR)
    assert shape(found) == (1, 2, 0, 2)
    assert {write.document["spec"]["pool"]["resourceSliceCount"] for write in found.updates} == {2}


@pytest.mark.spec("DN-10.P09")
def test_one_slice_more_updates_the_others_and_creates_it() -> None:
    old = indexed(1, content("a"), content("b"))
    assert planned(pool(content("a"), content("b"), content("c")), old) == (0, 2, 1, 2)


@pytest.mark.spec("DN-10.P17")
def test_slices_with_random_names_are_replaced_once() -> None:
    old = [existing(f"d-node-{i}", 1, 3, content(f"d{i}")) for i in range(3)]
    assert planned(pool(*(content(f"d{i}") for i in range(3))), old) == (3, 0, 3, 2)


@pytest.mark.spec("DN-10.P18")
def test_a_slice_with_an_index_is_kept_where_others_are_replaced() -> None:
    old = [existing(name, 1, 3, content(name)) for name in ("d-node-1", "00001-d-node-2", "d-node-3")]
    found = plan(pool(content("a"), content("b"), content("c")), old, AUTHOR)
    assert shape(found) == (2, 1, 2, 2) and found.updates[0].index == 1


@pytest.mark.spec("DN-6.4d")
def test_a_driver_may_number_its_pools_itself() -> None:
    old = indexed(3, content("a"), content("b"))
    assert planned(pool(content("a"), content("b"), generation=7), old) == (0, 2, 0, 7)
    assert planned(pool(content("a"), content("b"), generation=4), old) == (0, 2, 0, 4)
    assert planned(pool(content("a"), content("b"), generation=3), old) == (0, 0, 0, 3)
    assert planned(pool(content("a"), content("b"), generation=2), old) == (0, 0, 0, 3)
    assert planned(pool(content("a"), generation=7), []) == (0, 0, 1, 7)


@pytest.mark.spec("DN-6.4b")
def test_older_generations_are_obsolete_even_with_the_right_name_and_content() -> None:
    old = [*indexed(1, content("a"), content("b"))[:1], *indexed(2, content("a"), content("b"))[1:]]
    found = plan(pool(content("a"), content("b")), old, AUTHOR)
    assert shape(found) == (1, 1, 1, 3) and found.creates[0].index == 0


@pytest.mark.spec("DN-10.P14")
def test_a_changed_node_selector_is_an_update() -> None:
    selector: Document = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
    old = indexed(1, {"allNodes": True})
    (write,) = plan(pool({"nodeSelector": selector}), old, AUTHOR).updates
    assert write.document["spec"]["nodeSelector"] == selector and "allNodes" not in write.document["spec"]


def test_what_a_driver_does_not_choose_stays_in_an_updated_slice() -> None:
    old = indexed(1, content("a"))
    old[0]["spec"]["future"] = {"x": 1}
    (write,) = plan(pool({}), old, AUTHOR).updates
    assert write.document["spec"]["future"] == {"x": 1} and "devices" not in write.document["spec"]
    assert old[0]["spec"]["devices"], "what was read is not changed"


# Whatever there is, carrying out a plan leads to what is wanted, and then there is nothing left to do.

_contents = st.lists(st.sampled_from(["a", "b", "c", "d"]), unique=True, max_size=3).map(lambda found: content(*found))
_wanted = st.builds(
    lambda slices, generation: pool(*slices, generation=generation),
    st.lists(_contents, min_size=1, max_size=5),
    st.integers(0, 6),
)
_names = st.one_of(
    st.builds(lambda i, suffix: f"{i:05x}-d-{suffix}", st.integers(0, 6), st.sampled_from("xyz")),
    st.builds(lambda i: f"d-node-{i}", st.integers(0, 9)),
)
_actual = st.lists(
    st.builds(existing, _names, st.integers(0, 5), st.integers(1, 6), _contents),
    unique_by=lambda each: each["metadata"]["name"],
    max_size=8,
)


class Api:
    """Slices by name, as a server keeps them."""

    def __init__(self, slices: Sequence[Document]) -> None:
        self.slices = {each["metadata"]["name"]: each for each in slices}
        self._made = 0

    def carry_out(self, todo: Plan, steps: int = 1000) -> None:
        """As many writes as there are steps: a driver may be killed between any two."""
        work: list[tuple[str, Any]] = [("delete", each) for each in todo.deletes]
        work += [("update", each.document) for each in todo.updates] + [
            ("create", each.document) for each in todo.creates
        ]
        for verb, document in work[:steps]:
            name = document["metadata"].get("name") or self._name(document)
            if verb == "delete":
                del self.slices[name]
            else:
                assert (name in self.slices) == (verb == "update")
                self.slices[name] = {**document, "metadata": {**document["metadata"], "name": name}}

    def _name(self, document: Document) -> str:
        self._made += 1
        return f"{document['metadata']['generateName']}{self._made:05}"


@pytest.mark.spec("DN-6.4a")
@given(_wanted, _actual, st.lists(st.integers(0, 5), max_size=3))
def test_a_plan_converges_wherever_it_was_cut_off(wanted: WantedPool, actual: list[Document], cuts: list[int]) -> None:
    api = Api(actual)
    for steps in [*cuts, 1000]:
        todo = plan(wanted, api.slices.values(), AUTHOR)
        newest = max(map(generation_of, api.slices.values()), default=0)
        assert todo.generation >= newest, "generations never fall"
        api.carry_out(todo, steps)
    found = list(api.slices.values())
    count = len(wanted.slices)
    by_index = {names.decode(each["metadata"]["name"], count): each for each in found}
    assert len(found) == count and set(by_index) == set(range(count)), "one slice for each index"
    assert [content(*(d["name"] for d in by_index[i]["spec"].get("devices", ()))) for i in range(count)] == [
        *wanted.slices
    ]
    assert {generation_of(each) for each in found} == {todo.generation}
    assert {each["spec"]["pool"]["resourceSliceCount"] for each in found} == {count}
    assert planned(wanted, found) == (0, 0, 0, todo.generation)


@given(_wanted, _actual)
def test_a_generation_stays_only_if_one_write_makes_the_difference(wanted: WantedPool, actual: list[Document]) -> None:
    newest = max(map(generation_of, actual), default=0)
    todo = plan(wanted, actual, AUTHOR)
    if todo.generation == newest:
        assert not todo.creates and len(todo.updates) <= 1
    else:
        assert len(todo.updates) + len(todo.creates) == len(wanted.slices)
