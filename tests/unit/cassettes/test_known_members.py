from devlet.cassettes.known_members import known_members
from devlet.objects.schema.messages import message

DEVICE = message("k8s.io.api.resource.v1.Device")


def test_what_is_known_stays_as_it_is() -> None:
    device = {
        "name": "a",
        "attributes": {"x": {"int": 1}, "y.z/w": {"strings": ["a"]}},
        "capacity": {"m": {"value": "1Gi", "requestPolicy": {"default": "1", "validValues": ["1"]}}},
        "taints": [{"key": "k", "effect": "NoSchedule"}],
        "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}],
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "Exists"}]}]},
        "allNodes": None,
    }
    assert known_members(device, DEVICE) == device


def test_what_is_not_known_is_left_out_wherever_it_is() -> None:
    device = {
        "name": "a",
        "colour": "red",
        "attributes": {"x": {"int": 1, "float": 1.5}},
        "taints": [{"key": "k", "until": "tomorrow"}],
    }
    assert known_members(device, DEVICE) == {"name": "a", "attributes": {"x": {"int": 1}}, "taints": [{"key": "k"}]}


def test_what_has_another_form_is_for_others_to_refuse() -> None:
    assert known_members({"taints": 3, "attributes": [1]}, DEVICE) == {"taints": 3, "attributes": [1]}
