"""Claims that no further pod may use."""

import pytest

from devlet.control.taints.device_taints import Taint
from devlet.control.taints.sharing import blocking
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.slice import DeviceTaint


def claim(*tolerations: Document) -> ResourceClaim:
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    allocation = {"devices": {"results": [{**result, "tolerations": list(tolerations)}]}}
    return view(ResourceClaim, {"status": {"allocation": allocation}})


@pytest.mark.spec("DA-11.17a")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_that_the_claim_does_not_tolerate_keeps_further_pods_away(effect: str) -> None:
    found = blocking(claim(), lambda _: [Taint(DeviceTaint(key="hot", value="very", effect=effect), "heat")])
    assert found == (
        f"device gpu.example.com/n1/gpu-0 has taint hot=very:{effect} of DeviceTaintRule heat, "
        "which the claim does not tolerate"
    )


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "hot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    ],
)
def test_what_is_tolerated_keeps_nobody_away(toleration: Document) -> None:
    taint = Taint(DeviceTaint(key="hot", effect="NoExecute"))
    assert blocking(claim(toleration), lambda _: [taint]) is None


def test_devices_without_taints_and_claims_without_devices_keep_nobody_away() -> None:
    assert blocking(claim(), lambda _: []) is None
    assert blocking(ResourceClaim(), lambda _: [Taint(DeviceTaint(effect="NoExecute"))]) is None
