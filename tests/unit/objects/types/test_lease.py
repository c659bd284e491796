"""View of a lease."""

from devlet.objects.documents import view
from devlet.objects.types.core import Lease


def test_a_released_lease_has_no_holder() -> None:
    assert view(Lease, {"spec": {}}).spec.holder_identity is None
    held = view(Lease, {"spec": {"holderIdentity": "n1", "leaseDurationSeconds": 40, "leaseTransitions": 0}})
    assert held.spec.holder_identity == "n1"
    assert held.spec.lease_duration_seconds == 40
    assert held.spec.lease_transitions == 0
