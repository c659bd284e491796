from collections.abc import Callable
from typing import Any

import pytest

from devlet.daemon import node_settings
from devlet.daemon.config_file import Setting
from devlet.daemon.node_settings import NodeSettings
from devlet.errors import InvalidInput


@pytest.mark.parametrize(
    ("parse", "value", "expected"),
    [
        (node_settings.policy, "single-numa-node", "single-numa-node"),
        (node_settings.scope, "pod", "pod"),
        (node_settings.numa_nodes, "0", 0),
        (node_settings.numa_nodes, 64, 64),
        (node_settings.prefer_closest, True, "true"),
        (node_settings.node_ip, "10.0.0.5", "10.0.0.5"),
        (node_settings.node_ip, "FD00::1", "fd00::1"),
        (node_settings.node_ip, "", ""),
        (node_settings.max_allowable, 8, "8"),
        (node_settings.max_events, "500", 500),
        (node_settings.gates, "ResourceHealthStatus=false", {"ResourceHealthStatus": False}),
        (node_settings.gates, {"ResourceHealthStatus": Setting(False, "f:1")}, {"ResourceHealthStatus": False}),
        (node_settings.legacy_drivers, {"a.b": Setting("v1alpha1", "f:1")}, {"a.b": "v1alpha1"}),
    ],
)
def test_a_value_is_taken_from_a_flag_or_from_yaml(parse: Callable[[Any], Any], value: Any, expected: Any) -> None:
    assert parse(value) == expected


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (node_settings.policy, "static", "expected none, best-effort, restricted or single-numa-node"),
        (node_settings.policy, ["none"], "is not a topology policy"),
        (node_settings.scope, "node", "'node' is not a topology scope: expected container or pod"),
        (node_settings.numa_nodes, 65, "65 is not a number of NUMA nodes: expected a whole number from 0 to 64"),
        (node_settings.numa_nodes, True, "True is not a number"),
        (node_settings.numa_nodes, -1, "-1 is not a number"),
        (node_settings.numa_nodes, "²", "is not a number"),
        (node_settings.numa_nodes, "9" * 5000, "is not a number"),
        (node_settings.prefer_closest, "yes", "'yes': expected true or false"),
        (node_settings.node_ip, "localhost", "'localhost' is not an IP address"),
        (node_settings.node_ip, 10, "10 is not an IP address"),
        (node_settings.gates, 7, "7 is not a list of feature gates"),
        (node_settings.max_events, 0, "0 is not a number of events"),
        (node_settings.max_allowable, 7, "expected a whole number from 8 to 64"),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_expected(parse: Callable[[Any], Any], value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("²", ".")):
        parse(value)


@pytest.mark.parametrize("name", ["", "a_b", "x" * 64, "a,b"])
def test_a_driver_that_cannot_be_is_refused_with_its_line(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"^f:3: legacyDrivers: .* is not the name of a DRA driver"):
        node_settings.legacy_drivers({name: Setting("v1alpha3", "f:3")})


def test_settings_do_not_share_their_options() -> None:
    assert NodeSettings().topology_options is not NodeSettings().topology_options
    assert NodeSettings().feature_gates is not NodeSettings().feature_gates
