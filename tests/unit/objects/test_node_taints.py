import pytest

from devlet.objects.documents import Document, view
from devlet.objects.node import Taint
from devlet.objects.node_taints import untolerated
from devlet.objects.pod import Toleration
from devlet.objects.tolerations import tolerates

TAINT = Taint(key="gpu", value="a", effect="NoSchedule")


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


def test_each_taint_needs_a_toleration() -> None:
    other = Taint(key="disk", effect="NoExecute")
    tolerations = [Toleration(key="gpu", operator="Exists")]
    assert untolerated([TAINT, other], tolerations) == [other]
    assert untolerated([TAINT], tolerations) == []
