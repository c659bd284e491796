"""Options of the topology policies."""

import pytest

from devlet.errors import InvalidInput
from devlet.node.topology.options import Options, parse


def test_without_options_distances_do_not_matter_and_eight_nodes_are_allowed() -> None:
    assert parse({}) == Options(prefer_closest=False, max_nodes=8)


@pytest.mark.parametrize(("text", "truth"), [("true", True), ("1", True), ("T", True), ("false", False), ("0", False)])
def test_booleans_are_written_as_in_kubernetes(text: str, truth: bool) -> None:
    assert parse({"prefer-closest-numa-nodes": text}).prefer_closest is truth


@pytest.mark.parametrize("text", ["8", "+9", "0034"])
def test_more_nodes_can_be_allowed(text: str) -> None:
    assert parse({"max-allowable-numa-nodes": text}).max_nodes == int(text)


@pytest.mark.spec("DP-8.67")
@pytest.mark.parametrize("text", ["yes", "", "tRUE", " true"])
def test_what_is_neither_true_nor_false_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"prefer-closest-numa-nodes: .* neither true nor false"):
        parse({"prefer-closest-numa-nodes": text})


@pytest.mark.spec("DP-8.67")
@pytest.mark.parametrize("text", ["7", "-8", "", "eight", "8.0", "1_0", " 9", "٩", "9" * 5000])
def test_fewer_than_eight_nodes_cannot_be_configured(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"max-allowable-numa-nodes: .* at least 8"):
        parse({"max-allowable-numa-nodes": text})


@pytest.mark.spec("DP-8.67")
def test_an_unknown_option_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r'"closest".*prefer-closest-numa-nodes and max-allowable-numa-nodes'):
        parse({"closest": "true"})
