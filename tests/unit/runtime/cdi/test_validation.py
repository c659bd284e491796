from collections.abc import Sequence

import pytest

from devlet.runtime.cdi.spec import ContainerEdits, Device, DeviceNode, Hook, IntelRdt, Mount, NetDevice, Spec
from devlet.runtime.cdi.validation import problems

EDITS = ContainerEdits(env=("A=1",))
HOOKS = "prestart, createRuntime, createContainer, startContainer, poststart, poststop"


def found(edits: ContainerEdits = EDITS, **members: object) -> list[str]:
    whole: dict[str, object] = {"cdi_version": "1.1.0", "kind": "v/c", "devices": (Device("a", edits),)}
    return list(problems(Spec(**(whole | members))))  # type: ignore[arg-type]


@pytest.mark.spec("DN-7.3.5")
@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (ContainerEdits(), "containerEdits: must not be empty"),
        (ContainerEdits(env=("A=1", "secret")), "containerEdits.env[1]: must be NAME=value"),
        (ContainerEdits(device_nodes=(DeviceNode(""),)), "containerEdits.deviceNodes[0].path: must not be empty"),
        (
            ContainerEdits(device_nodes=(DeviceNode("/a", type="x"),)),
            "containerEdits.deviceNodes[0].type: 'x' must be b, c, u or p",
        ),
        (
            ContainerEdits(device_nodes=(DeviceNode("/a", permissions="rx"),)),
            "containerEdits.deviceNodes[0].permissions: 'rx' must be some of r, w and m, or none",
        ),
        (ContainerEdits(mounts=(Mount("", "/b"),)), "containerEdits.mounts[0].hostPath: must not be empty"),
        (ContainerEdits(mounts=(Mount("/a", ""),)), "containerEdits.mounts[0].containerPath: must not be empty"),
        (ContainerEdits(hooks=(Hook("x", "/h"),)), f"containerEdits.hooks[0].hookName: 'x' must be one of {HOOKS}"),
        (ContainerEdits(hooks=(Hook("prestart", ""),)), "containerEdits.hooks[0].path: must not be empty"),
        (
            ContainerEdits(hooks=(Hook("prestart", "/h", timeout=0),)),
            "containerEdits.hooks[0].timeout: must be greater than 0",
        ),
        (
            ContainerEdits(hooks=(Hook("prestart", "/h", env=("=",)),)),
            "containerEdits.hooks[0].env[0]: must be NAME=value",
        ),
        (
            ContainerEdits(intel_rdt=IntelRdt("a/b")),
            "containerEdits.intelRdt.closID: must be the name of a directory, or /",
        ),
        (
            ContainerEdits(net_devices=(NetDevice("", "n"),)),
            "containerEdits.netDevices[0].hostInterfaceName: must not be empty",
        ),
        (
            ContainerEdits(net_devices=(NetDevice("e", "n"), NetDevice("f", "n"))),
            "containerEdits.netDevices[1].name: 'n' is also that of devices[0].containerEdits.netDevices[0]",
        ),
    ],
)
def test_a_violation_is_reported_with_its_place(edits: ContainerEdits, expected: str) -> None:
    assert found(edits) == [f"devices[0].{expected}"]


@pytest.mark.parametrize("permissions", ["", "r", "rwm", "none"])
def test_permissions_are_some_of_three_letters_or_none(permissions: str) -> None:
    assert found(ContainerEdits(device_nodes=(DeviceNode("/a", permissions=permissions),))) == []


def test_names_of_one_letter_are_valid() -> None:
    assert found(kind="v/c") == []


@pytest.mark.spec("DN-7.3.5")
@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ((), ["devices: must have at least one"]),
        ((Device("a", EDITS), Device("a", EDITS)), ["devices[1].name: 'a' is also the name of devices[0]"]),
    ],
)
def test_a_spec_has_devices_with_unique_names(devices: Sequence[Device], expected: list[str]) -> None:
    assert found(devices=devices) == expected


def test_all_problems_are_reported_at_once() -> None:
    broken = found(
        cdi_version="0.3.0",
        kind="v",
        devices=(Device("-", ContainerEdits()),),
        container_edits=ContainerEdits(env=("",)),
    )
    assert [text.partition(":")[0] for text in broken] == [
        "kind",
        "devices[0].name",
        "devices[0].containerEdits",
        "containerEdits.env[0]",
    ]


@pytest.mark.spec("DN-7.3.8")
def test_annotations_are_limited_in_total() -> None:
    limit = 256 * 1024
    assert found(annotations={"a": "x" * (limit - 1)}) == []
    assert found(annotations={"a": "x" * limit}) == [
        f"annotations: {limit + 1} bytes are more than the limit of {limit}"
    ]
    device = Device("a", EDITS, {"a": "ä" * (limit // 2)})
    assert found(devices=(device,)) == [f"devices[0].annotations: {limit + 1} bytes are more than the limit of {limit}"]


def test_a_value_of_a_variable_is_not_shown() -> None:
    assert "secret" not in "".join(found(ContainerEdits(env=("=secret",))))
