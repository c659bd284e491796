"""View of a device class."""

from devlet.objects.documents import view
from devlet.objects.types.device_class import DeviceClass


def test_a_class_selects_and_configures() -> None:
    spec = {
        "selectors": [{"cel": {"expression": "true"}}, {}],
        "config": [{"opaque": {"driver": "d", "parameters": {"a": [1, None]}}}],
        "extendedResourceName": "example.com/gpu",
    }
    found = view(DeviceClass, {"metadata": {"name": "gpu"}, "spec": spec})
    assert found.name == "gpu"
    assert found.spec.selectors[0].cel is not None
    assert found.spec.selectors[1].cel is None
    assert found.spec.config[0].opaque is not None
    assert found.spec.config[0].opaque.parameters == {"a": [1, None]}
    assert found.spec.extended_resource_name == "example.com/gpu"
