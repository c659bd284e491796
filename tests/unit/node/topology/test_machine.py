"""The NUMA nodes of a machine."""

from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.node.topology import machine
from devlet.node.topology.machine import Machine


def sysfs(root: Path, rows: dict[int, str | None]) -> Path:
    for node, distances in rows.items():
        (root / f"node{node}").mkdir()
        if distances is not None:
            (root / f"node{node}" / "distance").write_text(f"{distances}\n")
    return root


def test_nodes_and_distances_are_those_of_the_kernel(tmp_path: Path) -> None:
    folder = sysfs(tmp_path, {0: "10 21", 1: "21 10"})
    for other in ("online", "possible"):
        (folder / other).write_text("0-1\n")
    (folder / "power").mkdir()
    assert machine.read(folder) == Machine((0, 1), ((10, 21), (21, 10)))


def test_nodes_are_sorted_by_number_and_may_have_gaps(tmp_path: Path) -> None:
    folder = sysfs(tmp_path, {10: "10 20 20", 2: "20 10 20", 8: "20 20 10"})
    assert machine.read(folder).nodes == (2, 8, 10)


def test_a_machine_without_numa_has_one_node(tmp_path: Path) -> None:
    assert machine.read(tmp_path / "missing") == machine.read(tmp_path) == Machine((0,), ((10,),))


@pytest.mark.parametrize("row", [None, "10", "10 20 30", "near far", ""])
def test_invalid_distances_count_as_unknown(tmp_path: Path, row: str | None) -> None:
    assert machine.read(sysfs(tmp_path, {0: "10 20", 1: row})) == Machine((0, 1), ())


def test_this_machine_can_be_read() -> None:
    assert machine.read().nodes


def test_a_simulated_machine_has_nodes_from_0_with_distances_of_10_and_20() -> None:
    assert machine.simulated(3) == Machine((0, 1, 2), ((10, 20, 20), (20, 10, 20), (20, 20, 10)))


@pytest.mark.parametrize("count", [-1, 0, 65])
def test_more_nodes_than_a_mask_holds_cannot_be_simulated(count: int) -> None:
    with pytest.raises(InvalidInput, match="1 to 64"):
        machine.simulated(count)
