from typing import Any

import pytest

from devlet.cli.views.container_spec import lines

NULL = {"type": "c", "major": 1, "minor": 3}
ADDED: dict[str, Any] = {
    "process": {"env": ["B=2", "A=1"], "user": {"additionalGids": [44, 27]}},
    "mounts": [{"destination": "/usr/lib/gpu", "source": "/opt/gpu", "options": ["ro", "bind"]}],
    "hooks": {
        "prestart": [{"path": "/bin/first"}],
        "createContainer": [{"path": "/bin/link", "args": ["link", "net0", "up"], "timeout": 5}],
    },
    "linux": {
        "devices": [{"path": "/dev/gpu0", **NULL}, {"path": "/dev/pipe", "type": "p"}],
        "resources": {"devices": [{"allow": True, **NULL, "access": "rw"}]},
        "netDevices": {"eth7": {"name": "net0"}},
        "intelRdt": {"closID": "gold"},
    },
    "annotations": {"k": "v"},
}
CONTAINER: dict[str, Any] = {
    "name": "main",
    "claims": [{"cdiDevices": ["a.com/nic=0"]}, {"driver": "late"}],
    "options": {
        "env": [{"name": "SHOWN", "value": "above"}],
        "devices": [
            {"containerPath": "/dev/gpu0", "hostPath": "/dev/null", "permissions": "rw"},
            {"containerPath": "/dev/fake0", "hostPath": "/dev/fake0", "permissions": "mrw"},
        ],
        "cdiDevices": ["a.com/gpu=0", "a.com/nic=0"],
        "conflicts": ["env A of x differs from that of y, which is kept"],
    },
    "oci": ADDED,
    "notes": ["no device node for the container: /dev/fake0: No such file or directory"],
}


def test_everything_that_the_oci_spec_gets_is_shown() -> None:
    assert list(lines(CONTAINER)) == [
        "Environment:",
        "  B=2",
        "  A=1",
        "Mounts:",
        "  PATH           HOST PATH   OPTIONS",
        "  /usr/lib/gpu   /opt/gpu    ro,bind",
        "Device nodes:",
        "  PATH         DEVICE             MODE",
        "  /dev/gpu0    c 1:3              rw",
        "  /dev/pipe    p 0:0              <none>",
        "  /dev/fake0   not on this host   mrw",
        "Network interfaces:",
        "  NAME   HOST NAME",
        "  net0   eth7",
        "Groups:",
        "  44, 27",
        "Hooks:",
        "  WHEN              PROGRAM      ARGUMENTS   TIMEOUT",
        "  prestart          /bin/first   <none>      <none>",
        "  createContainer   /bin/link    net0 up     5s",
        "Intel RDT:",
        "  closID: gold",
        "CDI devices:",
        "  a.com/nic=0",
        "  a.com/gpu=0",
        "Annotations:",
        "  k=v",
        "Conflicts:",
        "  env A of x differs from that of y, which is kept",
        "Notes:",
        "  no device node for the container: /dev/fake0: No such file or directory",
    ]


def test_nodes_below_a_directory_are_on_this_host() -> None:
    options = {"devices": [{"containerPath": "/dev/in", "hostPath": "/dev/all", "permissions": "r"}]}
    found = list(lines({"options": options, "oci": {"linux": {"devices": [{"path": "/dev/in/x", **NULL}]}}}))
    assert found == ["Device nodes:", "  PATH        DEVICE   MODE", "  /dev/in/x   c 1:3    <none>"]


def test_without_an_oci_spec_what_plugins_gave_is_shown() -> None:
    container = {key: value for key, value in CONTAINER.items() if key != "oci"}
    found = list(lines(container))
    assert found[:2] == ["Environment:", "  SHOWN=above"]
    assert found[found.index("CDI devices:") + 1 :][:2] == ["  a.com/nic=0", "  a.com/gpu=0"]
    assert found[-2:] == ["Notes:", "  no device node for the container: /dev/fake0: No such file or directory"]


ODD: list[dict[str, Any]] = [
    {},
    {"oci": {}, "options": None, "notes": 7},
    {"oci": {"process": 7, "mounts": [1], "linux": {"devices": {}, "netDevices": [], "intelRdt": None}, "hooks": 3}},
    {"oci": {"process": {"user": {"additionalGids": 4}}, "annotations": [], "hooks": {"prestart": 3}}},
]


@pytest.mark.parametrize("container", ODD)
def test_what_is_absent_or_odd_is_left_out(container: dict[str, Any]) -> None:
    assert list(lines(container)) == []


def test_a_value_cannot_move_the_cursor() -> None:
    assert list(lines({"oci": {"process": {"env": ["A=\x1b[2J\nx"]}}})) == ["Environment:", "  A=^[[2J\\nx"]


PLUGIN_OPTIONS: dict[str, Any] = {
    "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
    "mounts": [
        {"containerPath": "/usr/lib/gpu", "hostPath": "/opt/gpu", "readOnly": True},
        {"containerPath": "/scratch", "hostPath": "/tmp/x"},
    ],
    "devices": [{"containerPath": "/dev/gpu0", "hostPath": "/dev/nvidia0", "permissions": "rw"}],
    "annotations": {"a": "b"},
    "cdiDevices": ["gpu.example.com/gpu=gpu-0"],
    "conflicts": ["env A of x differs from that of y, which is kept"],
}


def test_everything_that_came_with_the_devices_is_shown() -> None:
    assert list(lines({"options": PLUGIN_OPTIONS})) == [
        "Environment:",
        "  B=2",
        "  A=1",
        "Mounts:",
        "  PATH           HOST PATH   MODE",
        "  /usr/lib/gpu   /opt/gpu    ro",
        "  /scratch       /tmp/x      rw",
        "Device nodes:",
        "  PATH        HOST PATH      MODE",
        "  /dev/gpu0   /dev/nvidia0   rw",
        "CDI devices:",
        "  gpu.example.com/gpu=gpu-0",
        "Annotations:",
        "  a=b",
        "Conflicts:",
        "  env A of x differs from that of y, which is kept",
    ]


@pytest.mark.parametrize("options", [{}, {"env": 7, "mounts": [1], "cdiDevices": None}])
def test_absent_or_odd_options_are_left_out(options: dict[str, Any]) -> None:
    assert list(lines({"options": options})) == []


def test_an_option_cannot_move_the_cursor() -> None:
    assert list(lines({"options": {"env": {"A": "\x1b[2J\nx"}}})) == ["Environment:", "  A=^[[2J\\nx"]
