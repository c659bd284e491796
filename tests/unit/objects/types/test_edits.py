from devlet.objects.types.edits import DeviceNode, Mount


def test_edits_are_values() -> None:
    assert Mount("/in", "/out") == Mount("/in", "/out", read_only=False) != Mount("/in", "/out", read_only=True)
    assert len({DeviceNode("/dev/a", "/dev/a", "rw"), DeviceNode("/dev/a", "/dev/a", "rw")}) == 1
