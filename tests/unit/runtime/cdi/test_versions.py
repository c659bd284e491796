import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from devlet.runtime.cdi.spec import ContainerEdits, Device, DeviceNode, IntelRdt, Mount, NetDevice, Spec
from devlet.runtime.cdi.versions import EARLIEST, FEATURES, KNOWN, minimum, normalised, problems

PLAIN = Spec("1.1.0", "v/c", (Device("a", ContainerEdits(env=("A=1",))),))

# feature: edits that use it
EDITS = {
    "type of a mount": ContainerEdits(mounts=(Mount("/a", "/b", type="bind"),)),
    "hostPath of a device node": ContainerEdits(device_nodes=(DeviceNode("/a", host_path="/b"),)),
    "additionalGids": ContainerEdits(additional_gids=(5,)),
    "intelRdt": ContainerEdits(intel_rdt=IntelRdt()),
    "enableCMT": ContainerEdits(intel_rdt=IntelRdt(enable_cmt=False)),
    "enableMBM": ContainerEdits(intel_rdt=IntelRdt(enable_mbm=True)),
    "schemata": ContainerEdits(intel_rdt=IntelRdt(schemata=())),
    "enableMonitoring": ContainerEdits(intel_rdt=IntelRdt(enable_monitoring=True)),
    "netDevices": ContainerEdits(net_devices=(NetDevice("eth0", "net0"),)),
}
OTHERS = {
    "device name that starts with a digit": structs.replace(PLAIN, devices=(Device("0", ContainerEdits()),)),
    "annotations": structs.replace(PLAIN, annotations={"a": "b"}),
    "class with a dot": structs.replace(PLAIN, kind="v/c.d"),
}
SPECS = (
    OTHERS
    | {name: structs.replace(PLAIN, container_edits=edits) for name, edits in EDITS.items()}
    | {f"{name} (of a device)": structs.replace(PLAIN, devices=(Device("a", edits),)) for name, edits in EDITS.items()}
    | {"annotations (of a device)": structs.replace(PLAIN, devices=(Device("a", ContainerEdits(), {"a": "b"}),))}
)
SINCE = {feature.name: feature.since for feature in FEATURES}


def at(spec: Spec, version: str) -> list[str]:
    return list(problems(structs.replace(spec, cdi_version=version)))


@pytest.mark.spec("DN-7.3.6")
def test_a_version_may_start_with_v_and_must_be_known() -> None:
    assert normalised("v0.3.0") == normalised("0.3.0") == "0.3.0"
    assert [normalised(version) for version in ("", "0.3", "vv0.3.0", "1.2.0", "V0.3.0")] == [None] * 5
    assert at(PLAIN, "1.2.0") == [f"unknown version '1.2.0': known are {', '.join(KNOWN)}"]


def test_every_feature_has_a_case() -> None:
    assert {name.removesuffix(" (of a device)") for name in SPECS} == SINCE.keys()


@pytest.mark.spec("DN-7.3.7")
@pytest.mark.parametrize("name", SPECS)
def test_a_feature_needs_the_version_that_added_it(name: str) -> None:
    since = SINCE[name.removesuffix(" (of a device)")]
    before = KNOWN[KNOWN.index(since) - 1]
    assert minimum(SPECS[name]) == since
    assert at(SPECS[name], since) == []
    assert any(text.startswith(f"must be at least {since}, because of: ") for text in at(SPECS[name], before))


@pytest.mark.spec("DN-7.3.7")
def test_a_spec_without_features_needs_0_3_0() -> None:
    assert minimum(PLAIN) == EARLIEST == "0.3.0"
    assert at(PLAIN, "0.2.0") == ["must be at least 0.3.0"]


@pytest.mark.spec("DN-7.3.6")
@pytest.mark.parametrize("name", ["enableCMT", "enableMBM"])
def test_removed_features_are_refused_in_newer_versions(name: str) -> None:
    assert [version for version in KNOWN if not at(SPECS[name], version)] == ["0.7.0", "0.8.0", "1.0.0"]
    assert at(SPECS[name], "1.1.0") == [f"must be lower than 1.1.0, because of: {name}"]


@given(st.lists(st.sampled_from(sorted(EDITS)), max_size=4))
def test_the_minimum_version_is_that_of_the_newest_feature(names: list[str]) -> None:
    total = sum((EDITS[name] for name in names), ContainerEdits())
    spec = structs.replace(PLAIN, container_edits=total)
    lowest = minimum(spec)
    refused = [version for version in KNOWN if any("at least" in text for text in at(spec, version))]
    assert refused == list(KNOWN[: KNOWN.index(lowest)])
