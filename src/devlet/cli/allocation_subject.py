"""A pod with its claims, or a single claim, whose devices are allocated together on one node.

Claims are created from templates as the claim controller creates them, but with a name that does not change.
"""

from dataclasses import dataclass

from devlet.alloc.pools import node_matches
from devlet.cli.allocation_input import Objects, text_of
from devlet.cli.session import Document
from devlet.errors import InvalidInput, NotFound
from devlet.objects.claims.from_template import claim_from_template
from devlet.objects.identifiers import ObjectKey
from devlet.objects.pods.claims import is_made_for
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod, PodResourceClaim

__all__ = ["Subject", "claim_subject", "pod_subject"]


@dataclass(frozen=True, slots=True)
class Subject:
    """`claims` are unallocated and `allocated` have devices; `made` names claims that do not exist yet."""

    kind: str
    key: ObjectKey
    claims: tuple[ResourceClaim, ...]
    allocated: tuple[ResourceClaim, ...] = ()
    pod: Pod | None = None
    made: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.key[1]}"

    @property
    def text(self) -> str:
        return f"{self.kind} {text_of(self.key)}"

    def excludes(self, node: Node) -> str:
        """Return why the node cannot be used whatever its devices, or an empty string."""
        for claim in self.allocated:
            where = claim.status.allocation.node_selector if claim.status.allocation else None
            if where is not None and not node_matches(node, None, None, where, f"claim {claim.name}"):
                return f"the allocated devices of claim {claim.name} cannot be used there"
        return _excluded(self.pod, node) if self.pod else ""


def _excluded(pod: Pod, node: Node) -> str:
    spec = pod.spec
    if spec.node_name:
        return "" if node.name == spec.node_name else f"the pod is bound to node {spec.node_name}"
    if any(node.metadata.labels.get(key) != value for key, value in spec.node_selector.items()):
        return "the pod's nodeSelector does not match"
    required = spec.affinity and spec.affinity.node_affinity and spec.affinity.node_affinity.required
    if required and not node_matches(node, None, None, required, f"pod {pod.name}"):
        return "the pod's node affinity does not match"
    return ""


def claim_subject(objects: Objects, key: ObjectKey) -> Subject:
    claim = objects.claims[key]
    if claim.status.allocation is None:
        return Subject("claim", key, (claim,))
    return Subject("claim", key, (), (claim,))


def pod_subject(objects: Objects, pod: Pod) -> Subject:
    """Return the pod with its claims, and add claims made from templates to the objects.

    Raises NotFound or InvalidInput if a claim or template is missing."""
    claims: dict[ObjectKey, ResourceClaim] = {}
    made = []
    for entry in pod.spec.resource_claims:
        claim, is_new = _claim(objects, pod, entry)
        if claim is not None:
            claims[claim.metadata.namespace, claim.metadata.name] = claim
            made += [claim.metadata.name] * is_new
    waiting = tuple(claim for claim in claims.values() if claim.status.allocation is None)
    allocated = tuple(claim for claim in claims.values() if claim.status.allocation is not None)
    return Subject("pod", (pod.metadata.namespace, pod.metadata.name), waiting, allocated, pod, tuple(made))


def _claim(objects: Objects, pod: Pod, entry: PodResourceClaim) -> tuple[ResourceClaim | None, bool]:
    """Return the claim and whether it was made here; None if the pod's status says that it needs none."""
    namespace = pod.metadata.namespace
    where = f"pod {namespace}/{pod.name}: claim {entry.name}"
    if entry.resource_claim_name is not None:
        found = objects.claims.get((namespace, entry.resource_claim_name))
        if found is None:
            raise NotFound(f"{where}: resourceclaim {entry.resource_claim_name} does not exist: create it")
        return found, False
    template = entry.resource_claim_template_name
    if template is None:
        raise InvalidInput(f"{where}: neither resourceClaimName nor resourceClaimTemplateName is set")
    statuses = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    if entry.name in statuses and statuses[entry.name] is None:
        return None, False
    name = statuses.get(entry.name)
    if name and (found := objects.claims.get((namespace, name))):
        if pod.uid and not is_made_for(found, pod):
            raise InvalidInput(f"{where}: resourceclaim {name} was not created for this pod: delete it")
        return found, False
    if (namespace, template) not in objects.templates:
        raise NotFound(f"{where}: resourceclaimtemplate {template} does not exist: create it")
    document = _from_template(
        objects.templates[namespace, template], pod, entry, name or _free_name(objects, pod, entry)
    )
    return objects.put_claim(document), True


def _free_name(objects: Objects, pod: Pod, entry: PodResourceClaim) -> str:
    name, number = f"{pod.name}-{entry.name}", 1
    while (pod.metadata.namespace, name) in objects.claims:
        number += 1
        name = f"{pod.name}-{entry.name}-{number}"
    return name


def _from_template(template: Document, pod: Pod, entry: PodResourceClaim, name: str) -> Document:
    claim = claim_from_template(template, pod, entry.name)
    metadata = {"name": name} | {k: v for k, v in claim["metadata"].items() if k != "generateName"}
    return claim | {"metadata": metadata, "status": {}}
