import pytest

from devlet.objects.schema.messages import is_always_written, keeps_zero, message

CORE, RESOURCE = "k8s.io.api.core.v1.", "k8s.io.api.resource.v1."


@pytest.mark.parametrize(
    ("name", "member", "always", "zero"),
    [
        (RESOURCE + "Device", "name", True, True),  # a string without omitempty
        (RESOURCE + "Device", "attributes", False, False),  # a map with it
        (RESOURCE + "Device", "nodeName", False, True),  # a pointer with it
        (CORE + "Container", "image", False, False),  # a string with it
        (CORE + "Container", "resources", True, True),  # a struct, for which it has no effect
        (CORE + "Container", "livenessProbe", False, True),  # a pointer to a struct
        (CORE + "PodSpec", "containers", True, True),  # a list without it
        (RESOURCE + "DeviceCapacity", "value", True, True),  # a quantity
    ],
)
def test_go_writes_what_its_tags_say(name: str, member: str, always: bool, zero: bool) -> None:
    field = message(name).properties[member]
    assert (is_always_written(field), keeps_zero(field)) == (always, zero)
