"""The claims as the controller knows them: the informer's copy, and the claims that were created a moment ago.

Without the second part, a retry before the copy has the new claim would create another one. A created claim counts
until the copy has reached its version; if the claim is not there then, it was deleted.
"""

from devlet.cluster.informer import Changed, Informer
from devlet.control.informers import BY_OWNER
from devlet.objects.claims.from_template import is_generated_for
from devlet.objects.identifiers import ObjectKey
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["KnownClaims"]


class KnownClaims:
    def __init__(self, copy: Informer[ResourceClaim]) -> None:
        self._copy = copy
        self._made: dict[ObjectKey, ResourceClaim] = {}
        self._made_for: dict[str, set[ObjectKey]] = {}  # by the UID of the owner

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
        """Return a claim that was created for the entry of the pod, even if the pod's status does not name it yet."""
        ours = [self._ours(key) for key in sorted(self._made_for.get(pod.uid, ()))]
        for claim in [*self._copy.by_index(BY_OWNER, pod.uid), *ours]:
            if claim and is_generated_for(claim.metadata, pod, entry_name) and not claim.metadata.is_deleting:
                return claim
        return None

    def _ours(self, key: ObjectKey) -> ResourceClaim | None:
        claim = self._made.get(key)
        if claim is not None and self._is_covered(claim):
            self._forget(key)
            return None
        return claim

    def _forget(self, key: ObjectKey) -> None:
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
