"""Views of slices."""

from devlet.objects.conversion import convert
from devlet.objects.documents import view
from devlet.objects.types.slice import ResourceSlice


def test_a_slice_holds_devices_of_a_pool() -> None:
    device = {
        "name": "gpu-0",
        "attributes": {"index": {"int": 0}, "model": {"string": "A"}, "ok": {"bool": False}, "all": {"ints": [1, 2]}},
        "capacity": {"memory": {"value": "8Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}},
        "consumesCounters": [{"counterSet": "s", "counters": {"memory": {"value": 4}}}],
        "taints": [{"key": "k", "effect": "NoExecute"}],
        "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "cores"}},
    }
    spec = {"driver": "d", "pool": {"name": "p", "generation": 2**63 - 1, "resourceSliceCount": 1}, "devices": [device]}
    slice_ = view(ResourceSlice, {"spec": spec})
    found = slice_.spec.devices[0]
    assert str(slice_.identity(found)) == "d/p/gpu-0"
    assert slice_.spec.pool.generation == 2**63 - 1
    assert slice_.spec.node_name is None
    assert (found.attributes["index"].int_, found.attributes["ok"].bool_) == (0, False)
    assert found.attributes["model"].string == "A"
    assert found.attributes["all"].ints == (1, 2)
    policy = found.capacity["memory"].request_policy
    assert policy is not None
    assert policy.valid_range is not None
    assert policy.valid_range.min == "1Gi"
    assert found.consumes_counters[0].counters["memory"].value == 4
    assert found.node_allocatable_resource_mappings["cpu"].capacity_key == "cores"


def test_a_slice_of_an_older_version_is_read_after_conversion() -> None:
    old = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "spec": {"nodeName": "", "devices": [{"name": "a", "basic": {"bindsToNode": True}}]},
    }
    slice_ = view(ResourceSlice, convert(old, "resource.k8s.io/v1"))
    assert slice_.spec.devices[0].binds_to_node is True
    assert slice_.spec.node_name is None
