from pathlib import Path

from devlet.examples import numa


def test_a_machine_has_the_nodes_that_the_kernel_shows_and_at_least_one(root: Path) -> None:
    assert numa.of_machine(root / "nothing") == 1
    for name in ("node0", "node1", "node10", "possible", "has_cpu"):
        (root / name).mkdir()
    assert numa.of_machine(root) == 3


def test_consecutive_gpus_are_on_the_same_node() -> None:
    assert numa.spread(4, 2) == {"gpu-0": 0, "gpu-1": 0, "gpu-2": 1, "gpu-3": 1}
    assert list(numa.spread(3, 4).values()) == [0, 1, 2]
