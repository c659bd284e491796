from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.sdk.slices import taint_times

T1, T2 = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def taint(key: str, since: str | None = None, **more: Any) -> Document:
    return {"key": key, "effect": "NoSchedule", **({"timeAdded": since} if since else {}), **more}


def device(name: str, *taints: Document) -> Document:
    return {"name": name, "taints": list(taints)}


def slice_of(generation: int, *devices: Document) -> Document:
    return {"spec": {"pool": {"generation": generation}, "devices": list(devices)}}


@pytest.mark.spec("DN-11.09")
def test_every_taint_keeps_its_time() -> None:
    times = taint_times.of_devices([device("a", taint("x", T1), taint("y", T2))])
    assert taint_times.filled([device("a", taint("x"), taint("y"))], times) == [
        device("a", taint("x", T1), taint("y", T2))
    ]


def test_another_value_or_effect_or_device_is_another_taint() -> None:
    times = taint_times.of_devices([device("a", taint("x", T1))])
    others = [device("a", taint("x", value="v"), taint("x", effect="None")), device("b", taint("x"))]
    assert taint_times.filled(others, times) == others


def test_a_time_that_the_driver_says_is_left_alone() -> None:
    times = taint_times.of_devices([device("a", taint("x", T1))])
    assert taint_times.filled([device("a", taint("x", T2))], times) == [device("a", taint("x", T2))]


def test_what_the_newest_slice_says_of_a_device_counts() -> None:
    slices = [slice_of(2, device("a", taint("x", T2))), slice_of(1, device("a", taint("x", T1), taint("y", T1)))]
    assert taint_times.of_slices(slices) == {"a": {("x", "", "NoSchedule"): T2}}


def test_only_the_times_of_taints_that_are_wanted_are_kept() -> None:
    times = taint_times.of_devices([device("a", taint("x", T1), taint("y", T1)), device("b", taint("x", T1))])
    assert taint_times.kept([device("a", taint("y")), {"name": "b"}], times) == {"a": {("y", "", "NoSchedule"): T1}}
