"""Most cases are data: see tests/golden/cdi/injections.json."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput, NotFound
from devlet.runtime.cdi.apply import apply, completed
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.host_nodes import HostNode
from devlet.runtime.cdi.registry import edits
from devlet.runtime.cdi.spec import ContainerEdits, DeviceNode, IntelRdt, Mount

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "cdi" / "injections.json").read_text())
HOST = {path: HostNode(**node) for path, node in GOLDEN["host"].items()}


def look(path: str) -> HostNode:
    if path not in HOST:
        raise NotFound(f"{path}: No such file or directory")
    return HOST[path]


def lay_out(top: Path, directories: list[dict[str, str]]) -> list[Path]:
    for i, files in enumerate(directories):
        (top / str(i)).mkdir()
        for name, text in files.items():
            (top / str(i) / name).write_text(text)
    return [top / str(i) for i in range(len(directories))]


@pytest.mark.spec("DN-7.3.9", "DN-7.3.10", "DN-7.3.11", "DN-7.3.12")
@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: str(case["name"]))
def test_edits_are_applied_as_by_the_reference_library(case: dict[str, Any], tmp_path: Path) -> None:
    registry = Cache(lay_out(tmp_path, case["directories"])).refresh()
    assert list(registry.devices) == case["known"]
    assert sorted(str(path.relative_to(tmp_path)) for path in registry.errors) == case["errors"]
    found = registry.resolve(case["devices"])
    assert list(found.missing) == case.get("unresolved", [])
    before = deepcopy(case["document"])
    if "result" in case:
        assert apply(case["document"], edits(found.complete()), look=look) == case["result"]
    elif "fails" in case:
        with pytest.raises(NotFound):
            apply(case["document"], edits(found.complete()), look=look)
    assert case["document"] == before


def test_nothing_to_apply_changes_nothing() -> None:
    assert apply({"ociVersion": "1.3.0", "x": [1]}, ContainerEdits(), look=look) == {"ociVersion": "1.3.0", "x": [1]}


@pytest.mark.spec("DN-7.3.10")
def test_permissions_none_create_a_node_that_cannot_be_opened() -> None:
    node = DeviceNode("/dev/null", permissions="none")
    linux = apply({}, ContainerEdits(device_nodes=(node,)), look=look)["linux"]
    assert linux["resources"]["devices"] == [{"allow": True, "type": "c", "major": 1, "minor": 3}]


@pytest.mark.spec("DN-7.3.10")
def test_a_missing_host_node_is_named_with_the_reason() -> None:
    with pytest.raises(
        NotFound, match="device node /dev/x has no type or number, and the host cannot tell: /dev/y: No"
    ):
        completed(DeviceNode("/dev/x", host_path="/dev/y"), look)
    with pytest.raises(NotFound, match="device node /dev/null is of type c, expected b"):
        completed(DeviceNode("/dev/x", host_path="/dev/null", type="b"), look)


def test_the_real_host_is_used_by_default() -> None:
    (device,) = apply({}, ContainerEdits(device_nodes=(DeviceNode("/dev/null"),)))["linux"]["devices"]
    assert (device["type"], device["major"], device["minor"]) == ("c", 1, 3)


def test_fields_of_older_versions_are_applied() -> None:
    applied = apply({}, ContainerEdits(intel_rdt=IntelRdt("x", enable_cmt=True, enable_mbm=False)), look=look)
    assert applied == {"linux": {"intelRdt": {"closID": "x", "enableCMT": True}}}


@pytest.mark.parametrize(
    "document", [{"process": []}, {"process": {"env": {}}}, {"mounts": {}}, {"linux": 1}, {"process": 1}]
)
def test_a_document_that_is_not_an_oci_spec_is_refused(document: dict[str, Any]) -> None:
    everything = ContainerEdits(
        env=("A=1",), mounts=(Mount("/a", "/b"),), device_nodes=(DeviceNode("/dev/null"),), additional_gids=(5,)
    )
    with pytest.raises(InvalidInput, match="OCI spec: "):
        apply(document, everything, look=look)


def test_null_in_a_document_counts_as_missing() -> None:
    edits = ContainerEdits(env=("A=1",), mounts=(Mount("/a", "/b"),), device_nodes=(DeviceNode("/dev/null"),))
    empty = {"process": None, "mounts": None, "linux": None}
    assert apply(empty, edits, look=look) == apply({}, edits, look=look)


ENVS = st.lists(st.builds("{}={}".format, st.sampled_from("ABC"), st.sampled_from("123")), max_size=6)


@given(ENVS, ENVS)
def test_variables_are_replaced_by_name(present: list[str], added: list[str]) -> None:
    unique = [f"{k}={v}" for k, v in dict(each.split("=") for each in present).items()]
    result = apply({"process": {"env": unique}}, ContainerEdits(env=tuple(added)), look=look)
    assert result["process"]["env"] == [f"{k}={v}" for k, v in dict(e.split("=") for e in unique + added).items()]


PATHS = st.lists(st.sampled_from("ab"), max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(PATHS, max_size=5, unique=True), st.lists(PATHS, min_size=1, max_size=5))
def test_mounts_neither_hide_nor_replace_each_other(present: list[str], added: list[str]) -> None:
    document = {"mounts": [{"destination": path} for path in present]}
    mounts = apply(document, ContainerEdits(mounts=tuple(Mount("/h", path) for path in added)), look=look)["mounts"]
    paths = [mount["destination"] for mount in mounts]
    assert sorted(paths) == sorted({*present, *added})
    for i, path in enumerate(paths):
        assert not any(earlier.startswith(f"{path.rstrip('/')}/") for earlier in paths[:i] if path != "/")


@given(st.lists(st.sampled_from(["/dev/null", "/dev/zero"]), max_size=3))
def test_applying_twice_gives_the_same_nodes(paths: list[str]) -> None:
    edits = ContainerEdits(device_nodes=tuple(map(DeviceNode, paths)), additional_gids=(5, 6))
    once = apply({}, edits, look=look)
    twice = apply(once, edits, look=look)
    assert twice.get("linux", {}).get("devices") == once.get("linux", {}).get("devices")
    assert twice["process"] == once["process"]
