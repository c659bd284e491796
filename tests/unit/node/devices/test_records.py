from devlet.node.devices.records import DeviceState, PluginState


def test_states_are_shown_by_their_names() -> None:
    assert [*map(str, PluginState)] == ["Connected", "Silent", "Disconnected", "Standby", "Awaited"]
    assert [*map(str, DeviceState)] == ["Free", "Reserved", "Held", "Releasing"]
