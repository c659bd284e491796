"""The claims as the controller knows them: our copy of the cluster's, and what we made ourselves a moment ago.

Without the second part, a retry that comes before the copy has the new claim would make another one. What we made
counts until the copy has come as far as its version; if the claim is not there then, somebody has deleted it.
"""

from devlet.cluster.informer import Changed, Informer, Key
from devlet.control.informers import BY_OWNER
from devlet.objects.claims.from_template import is_generated_for
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["KnownClaims"]


class KnownClaims:
    def __init__(self, copy: Informer[ResourceClaim]) -> None:
        self._copy = copy
        self._made: dict[Key, ResourceClaim] = {}
        self._made_for: dict[str, set[Key]] = {}  # by the UID of the owner

    def made(self, claim: ResourceClaim) -> None:
        if not self._is_covered(claim):
            key = (claim.metadata.namespace, claim.metadata.name)
            self._made[key] = claim
            self._made_for.setdefault(_owner(claim), set()).add(key)

    def delivered(self, change: Changed[ResourceClaim]) -> None:
        self._forget(change.key)

    def get(self, name: str, namespace: str = "") -> ResourceClaim | None:
        return self._copy.get(name, namespace) or self._ours((namespace, name))

    def made_for(self, pod: Pod, entry_name: str) -> ResourceClaim | None:
        """One that the entry of the pod can have, if its status does not say so yet."""
        ours = [self._ours(key) for key in sorted(self._made_for.get(pod.uid, ()))]
        for claim in [*self._copy.by_index(BY_OWNER, pod.uid), *ours]:
            if claim and is_generated_for(claim.metadata, pod, entry_name) and not claim.metadata.is_deleting:
                return claim
        return None

    def _ours(self, key: Key) -> ResourceClaim | None:
        claim = self._made.get(key)
        if claim is not None and self._is_covered(claim):
            self._forget(key)
            return None
        return claim

    def _forget(self, key: Key) -> None:
        if (claim := self._made.pop(key, None)) is not None:
            keys = self._made_for[_owner(claim)]
            keys.remove(key)
            if not keys:
                del self._made_for[_owner(claim)]

    def _is_covered(self, claim: ResourceClaim) -> bool:
        return bool(self._copy.version) and int(self._copy.version) >= int(claim.metadata.resource_version)


def _owner(claim: ResourceClaim) -> str:
    owner = claim.metadata.controller
    return owner.uid if owner else ""
