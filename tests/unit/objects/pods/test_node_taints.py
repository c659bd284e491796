from devlet.objects.pods.tolerations import untolerated
from devlet.objects.types.node import Taint
from devlet.objects.types.pod import Toleration

TAINT = Taint(key="gpu", value="a", effect="NoSchedule")


def test_each_taint_needs_a_toleration() -> None:
    other = Taint(key="disk", effect="NoExecute")
    tolerations = [Toleration(key="gpu", operator="Exists")]
    assert untolerated([TAINT, other], tolerations) == [other]
    assert untolerated([TAINT], tolerations) == []
