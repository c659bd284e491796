from devlet.node.devices.records import DeviceState, PluginState


def test_states_read_as_they_are_shown() -> None:
    assert [*map(str, PluginState)] == ["Connected", "Silent", "Disconnected", "Standby", "Awaited"]
    assert [*map(str, DeviceState)] == ["Free", "Reserved", "Held", "Releasing"]
