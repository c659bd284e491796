import logging
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.sdk.device_lists import check_resource, device_list
from devlet.sdk.values import PluginDevice
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

LED = "example.com/led"


def test_a_list_is_encoded_with_health_and_nodes() -> None:
    devices = [PluginDevice("a", numa_nodes=(0, 2)), PluginDevice("b", "Unhealthy")]
    made = device_list(LED, devices)
    a, b = pb.ListAndWatchResponse.FromString(made.message).devices
    assert (a.ID, a.health, [node.ID for node in a.topology.nodes]) == ("a", "Healthy", [0, 2])
    assert (b.ID, b.health, b.HasField("topology")) == ("b", "Unhealthy", False)
    assert (made.devices, made.ids) == (tuple(devices), frozenset("ab"))


def test_an_empty_list_is_a_list() -> None:
    assert device_list(LED, []).message == b""


@pytest.mark.spec("DP-9.19")
@pytest.mark.parametrize(
    ("devices", "problem"),
    [
        ([PluginDevice("a"), PluginDevice("a", "Unhealthy")], "two devices have the id 'a'"),
        ([PluginDevice("")], "a device has the id '', expected a string of 1 to 63 characters"),
        ([PluginDevice(7)], "a device has the id 7"),  # type: ignore[arg-type]
        ([PluginDevice("x" * 64)], "has 64 characters, at most 63 are allowed"),
        ([PluginDevice("tty\udcff")], "is not valid Unicode"),
        ([PluginDevice("a", "")], "the health of 'a' is '', expected Healthy or Unhealthy"),
        ([PluginDevice("a", numa_nodes=(-1,))], r"the NUMA nodes of 'a' are \(-1,\), expected numbers from 0, or none"),
        ([PluginDevice("a", "Sick")], "the health of 'a' is 'Sick', expected Healthy or Unhealthy"),
        ([PluginDevice("a", numa_nodes=0)], "the NUMA nodes of 'a' are 0, expected"),  # type: ignore[arg-type]
        (["a"], "'a' is not a PluginDevice"),
    ],
)
def test_a_list_with_a_mistake_is_refused_as_a_whole(devices: list[PluginDevice], problem: str) -> None:
    with pytest.raises(InvalidInput, match=f"the device list of {LED} is not sent: .*{problem}"):
        device_list(LED, [PluginDevice("fine"), *devices])


def test_63_characters_are_enough_for_an_id_however_many_bytes_they_have() -> None:
    assert device_list(LED, [PluginDevice("ü" * 63)]).ids == {"ü" * 63}


def test_a_longer_id_can_be_allowed_as_nodes_do() -> None:
    assert device_list(LED, [PluginDevice("x" * 64)], id_length=64).ids == {"x" * 64}
    with pytest.raises(InvalidInput, match="has 65 characters, at most 64 are allowed"):
        device_list(LED, [PluginDevice("x" * 65)], id_length=64)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=63), unique=True))
def test_whatever_is_accepted_can_be_read_back(ids: list[str]) -> None:
    made = device_list(LED, map(PluginDevice, ids))
    assert [each.ID for each in pb.ListAndWatchResponse.FromString(made.message).devices] == ids


@pytest.mark.spec("DP-9.31")
def test_a_list_that_a_kubelet_will_not_take_is_sent_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    devices = [PluginDevice(f"{number:063}") for number in range(56_000)]
    with caplog.at_level(logging.WARNING):
        assert len(device_list(LED, devices).message) > 4 << 20
    assert ["device list too large for a kubelet, which accepts 4 MiB: use shorter ids"] == caplog.messages


def test_a_missing_name_is_reported_with_how_to_set_it() -> None:
    with pytest.raises(InvalidInput, match=r'^Leds has no resource: set resource = "example.com/led"$'):
        check_resource("", "Leds")


@pytest.mark.parametrize("name", ["led", "kubernetes.io/led", "a.kubernetes.io/led", "Example.com/led", "a/b/c"])
def test_a_name_that_no_pod_could_request_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not the name of an extended resource: expected domain/name"):
        check_resource(name, "Leds")


def test_a_domain_and_a_name_make_a_resource() -> None:
    check_resource(LED, "Leds")


@pytest.mark.parametrize("given", [None, "red", PluginDevice("red")])
def test_a_value_that_is_not_a_list_is_reported(given: object) -> None:
    with pytest.raises(InvalidInput, match=r"devices\(\) of example.com/led gave .*, expected a list of PluginDevice"):
        device_list("example.com/led", cast(list[PluginDevice], given))
