from pathlib import Path

import pytest

from devlet.errors import InvalidInput, NotFound
from devlet.testing.cassettes import library
from devlet.testing.cassettes.cassette_file import encode


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
    with pytest.raises(InvalidInput, match="lad: there is no such file, nor a cassette of that name: a100-mig, led"):
        library.opened("lad")
    with pytest.raises(InvalidInput, match="led: No such file"):
        library.opened("./led")
    with pytest.raises(NotFound, match=r"no cassette '\.\./x'"):
        library.shipped("../x")


def test_the_slices_of_an_a100_share_its_counters() -> None:
    """Seven 1g.5gb slices take all of a GPU's multiprocessors, and nothing takes more than there is."""
    (driver,) = library.shipped("a100-mig").drivers
    (pool,) = driver.pools
    sets = {each["name"]: each["counters"] for each in pool.shared_counters}
    slices = [d for d in pool.devices if d["name"].startswith("gpu-0-mig-1g5gb-")]
    consumed = [each for d in slices for each in d["consumesCounters"]]
    total = sum(int(each["counters"]["multiprocessors"]["value"]) for each in consumed)
    assert (len(slices), total) == (7, int(sets["gpu-0-counter-set"]["multiprocessors"]["value"]))
    for device in pool.devices:
        for each in device["consumesCounters"]:
            assert each["counters"].keys() <= sets[each["counterSet"]].keys()
