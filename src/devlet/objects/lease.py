"""View of a lease: who holds something, and since when.

A lease runs out `lease_duration_seconds` after `renew_time`, by the reader's clock.
"""

from devlet.objects.meta import ObjectMeta, View

__all__ = ["NODE_LEASES", "Lease", "LeaseSpec"]

NODE_LEASES = "kube-node-lease"  # the namespace where nodes have theirs


class LeaseSpec(View, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
