from typing import Any

import pytest

from devlet.cli.views.container_options import lines

OPTIONS: dict[str, Any] = {
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
    assert list(lines(OPTIONS)) == [
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
def test_what_is_absent_or_odd_is_left_out(options: dict[str, Any]) -> None:
    assert list(lines(options)) == []


def test_a_value_cannot_move_the_cursor() -> None:
    assert list(lines({"env": {"A": "\x1b[2J\nx"}})) == ["Environment:", "  A=^[[2J\\nx"]
