import functools
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from devlet.cassettes import edits, library
from devlet.cassettes.cassette import Pool
from devlet.cassettes.cassette_file import encode
from devlet.errors import InvalidInput, NotFound
from devlet.objects.values.quantity import Quantity


def test_each_says_its_name_and_what_it_is() -> None:
    assert library.names() == ["a100-mig", "led", "sriov-nic", "usb"]
    for name in library.names():
        metadata = library.shipped(name).metadata
        assert metadata.name == name and metadata.description


def test_a_file_goes_before_what_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert library.opened("led").node == "desk"
    Path("led").write_bytes(encode(library.shipped("usb")))
    assert library.opened("led").node == "lab"
    assert library.opened("./led").node == "lab"


def test_what_is_neither_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="lad: no such file; devlet ships the cassettes a100-mig, led"):
        library.opened("lad")
    with pytest.raises(InvalidInput, match="led: No such file"):
        library.opened("./led")
    with pytest.raises(NotFound, match=r"no cassette '\.\./x'"):
        library.shipped("../x")


# An A100 of 40 GB as NVIDIA documents it: how many there can be of a profile, and `CAPACITIES` of each.
MIG = {
    "1g.5gb": (7, 14, 1, 0, 0, 0),
    "1g.5gb+me": (1, 14, 1, 1, 1, 1),
    "1g.10gb": (4, 14, 1, 1, 0, 0),
    "2g.10gb": (3, 28, 2, 1, 0, 0),
    "3g.20gb": (2, 42, 3, 2, 0, 0),
    "4g.20gb": (1, 56, 4, 2, 0, 0),
    "7g.40gb": (1, 98, 7, 5, 1, 1),
}
CAPACITIES = ("multiprocessors", "copyEngines", "decoders", "jpegEngines", "ofaEngines")


@functools.cache
def a100() -> Pool:
    (pool,) = library.shipped("a100-mig").drivers[0].pools
    return pool


def slices_of_gpu_0() -> dict[str, list[dict[str, Any]]]:
    pool = a100()
    found: dict[str, list[dict[str, Any]]] = {profile: [] for profile in MIG}
    for device in pool.devices:
        if device["name"].startswith("gpu-0-mig-"):
            found[device["attributes"]["profile"]["string"]].append(device)
    return found


def fit(devices: Any) -> bool:
    """Whether a GPU has the counters for all of them."""
    pool = a100()
    left = {name: Quantity.parse(each["value"]) for name, each in pool.shared_counters[0]["counters"].items()}
    for device in devices:
        for name, each in device["consumesCounters"][0]["counters"].items():
            left[name] -= Quantity.parse(each["value"])
    return all(amount >= Quantity.parse("0") for amount in left.values())


@pytest.mark.parametrize("profile", MIG)
def test_a_gpu_has_as_many_slices_of_a_profile_as_the_real_one(profile: str) -> None:
    count, *engines = MIG[profile]
    devices = slices_of_gpu_0()[profile]
    assert any(fit(chosen) for chosen in combinations(devices, count))
    assert not any(fit(chosen) for chosen in combinations(devices, count + 1))
    for device in devices:
        assert [int(device["capacity"][name]["value"]) for name in CAPACITIES] == engines
        assert device["capacity"]["memory"] == device["consumesCounters"][0]["counters"]["memory"]


def test_slices_of_different_profiles_fit_together_as_on_the_real_one() -> None:
    found = slices_of_gpu_0()
    four, (low, high), (two, *_) = found["4g.20gb"][0], found["3g.20gb"], found["2g.10gb"]
    assert fit([four, high])
    assert not fit([four, low]) and not fit([four, two])
    assert not fit([found["7g.40gb"][0], found["1g.5gb"][6]])


@pytest.mark.parametrize("name", library.names())
def test_devices_in_one_container_do_not_overwrite_each_others_variables(name: str) -> None:
    for driver in library.shipped(name).drivers:
        devices = [device["name"] for pool in driver.pools for device in pool.devices]
        given = [edits.for_device(driver, edits.Given("{node}", device, "uid")).env for device in devices]
        own = [variable.partition("=")[0] for env in given for variable in env if not variable.endswith("=void")]
        assert len(own) == len(set(own)) == len(devices)
