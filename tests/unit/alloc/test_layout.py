from tests.support.allocation.desk import Desk


def test_slices_of_broken_pools_are_not_tried() -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": ["d1", "d1"]}, {"pool": "p2", "devices": 1}])
    layout = desk.allocator.layout(desk.node)
    assert [pool.key[1] for pool in layout.pools] == ["p1", "p2"]
    assert [slice_.entry.name for slice_ in layout.slices] == ["slice-2"]
    assert [key[1] for key in layout.by_key] == ["p1", "p2"]


def test_a_layout_is_kept_until_a_slice_or_the_node_changes() -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": 1}], claims=[["r0 a"]])
    layout = desk.allocator.layout(desk.node)
    desk.ask()
    assert desk.allocator.layout(desk.node) is layout
    desk.inventory.remove_slice("slice-1")
    assert desk.allocator.layout(desk.node).slices == []


def test_an_updated_node_is_examined_again() -> None:
    desk = Desk(slices=[{"pool": "p1", "at": "region=region-2", "devices": 1}])
    assert desk.allocator.layout(desk.node).slices == []
    moved = Desk(node="node-1 region=region-2").node
    assert len(desk.allocator.layout(moved).slices) == 1
