import pytest

from devlet.objects.documents import Document, view
from devlet.objects.pods.tolerations import tolerates
from devlet.objects.types.claim import DeviceToleration
from devlet.objects.types.node import Taint
from devlet.objects.types.pod import Toleration
from devlet.objects.types.slice import DeviceTaint

TAINT = Taint(key="gpu", value="a", effect="NoSchedule")
HOT = DeviceTaint(key="hot", value="1", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "a"}, True),
        ({"key": "gpu", "value": "b"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "Gt", "value": "a"}, False),
    ],
)
def test_a_toleration_is_for_its_key_its_value_and_its_effect(toleration: Document, expected: bool) -> None:
    assert tolerates(view(Toleration, toleration), TAINT) is expected


@pytest.mark.spec("DA-3.7b")
@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        (DeviceToleration(key="hot", operator="Exists"), True),
        (DeviceToleration(operator="Exists"), True),
        (DeviceToleration(key="hot", operator="Exists", effect="NoSchedule"), True),
        (DeviceToleration(key="hot", operator="Exists", effect="NoExecute"), False),
        (DeviceToleration(key="cold", operator="Exists"), False),
        (DeviceToleration(key="hot", operator="Equal", value="1"), True),
        (DeviceToleration(key="hot", value="1"), True),
        (DeviceToleration(value="1"), True),
        (DeviceToleration(key="hot", operator="Equal", value="2"), False),
        (DeviceToleration(key="hot", operator="Lt", value="1"), False),
        (DeviceToleration(key="hot", operator="Exists", toleration_seconds=0), True),
    ],
)
def test_a_toleration_matches_by_effect_key_and_value(toleration: DeviceToleration, matches: bool) -> None:
    assert tolerates(toleration, HOT) is matches
