from pathlib import Path
from typing import Any

import msgspec
import pytest

from devlet.cli import allocation_files
from devlet.cli.allocation_input import Objects
from devlet.cli.allocation_subject import claim_subject, pod_subject
from devlet.errors import InvalidInput, NotFound
from devlet.objects.types.pod import Pod

Document = dict[str, Any]

FROM_TEMPLATE: Document = {"name": "gpu", "resourceClaimTemplateName": "two-big"}


@pytest.fixture
def objects(cluster: Path) -> Objects:
    return allocation_files.read([str(cluster)], "default")


def pod(*claims: Document, status: Document | None = None, **spec: Any) -> Pod:
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u1"},
        "spec": {"resourceClaims": list(claims), **spec},
        "status": status or {},
    }
    return msgspec.convert(document, Pod)


def excluded(objects: Objects, made: Pod) -> dict[str, str]:
    subject = pod_subject(objects, made)
    return {node.name: reason for node in objects.node_list() if (reason := subject.excludes(node))}


def test_a_claim_alone_is_waiting_or_allocated(objects: Objects) -> None:
    waiting, settled = (claim_subject(objects, ("default", name)) for name in ("any", "training"))
    assert [claim.name for claim in waiting.claims] == ["any"] and not waiting.allocated
    assert [claim.name for claim in settled.allocated] == ["training"] and not settled.claims
    assert (waiting.name, waiting.text) == ("claim/any", "claim default/any")


def test_a_claim_of_a_template_is_made_as_the_controller_would(objects: Objects) -> None:
    subject = pod_subject(objects, objects.pods["default", "big"])
    (claim,) = subject.claims
    assert subject.made == ("big-gpu",)
    assert claim.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert claim.metadata.labels == {"team": "a"}
    assert claim.metadata.controller is None
    assert claim.spec.devices.requests[0].exactly and claim.spec.devices.requests[0].exactly.count == 2
    assert ("default", "big-gpu") in objects.claims


def test_a_claim_that_is_made_belongs_to_its_pod(objects: Objects) -> None:
    (claim,) = pod_subject(objects, pod(FROM_TEMPLATE)).claims
    assert claim.metadata.controller and claim.metadata.controller.uid == "u1"


def test_a_claim_that_is_made_does_not_take_the_name_of_another(objects: Objects) -> None:
    document = objects.documents["default", "any"]
    objects.put_claim({**document, "metadata": {"name": "big-gpu", "namespace": "default"}})
    (claim,) = pod_subject(objects, objects.pods["default", "big"]).claims
    assert claim.name == "big-gpu-2"


def test_a_pod_has_the_claims_that_it_names(objects: Objects) -> None:
    entries = [{"name": name, "resourceClaimName": name} for name in ("any", "training")]
    subject = pod_subject(objects, pod(*entries))
    assert [claim.name for claim in subject.claims] == ["any"]
    assert [claim.name for claim in subject.allocated] == ["training"]


def test_a_pod_whose_status_names_a_claim_has_that_one(objects: Objects) -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "any"}]}
    document = objects.documents["default", "any"]
    with pytest.raises(InvalidInput, match="resourceclaim any was not created for this pod: delete it"):
        pod_subject(objects, pod(FROM_TEMPLATE, status=status))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", "controller": True}
    objects.put_claim({**document, "metadata": {**document["metadata"], "ownerReferences": [owner]}})
    subject = pod_subject(objects, pod(FROM_TEMPLATE, status=status))
    assert [claim.name for claim in subject.claims] == ["any"] and not subject.made


def test_a_pod_that_needs_no_claim_has_none(objects: Objects) -> None:
    subject = pod_subject(objects, pod(FROM_TEMPLATE, status={"resourceClaimStatuses": [{"name": "gpu"}]}))
    assert not subject.claims and not subject.allocated


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (
            {"name": "gpu", "resourceClaimName": "x"},
            "pod default/p: claim gpu: resourceclaim x does not exist: create it",
        ),
        ({"name": "gpu", "resourceClaimTemplateName": "x"}, "resourceclaimtemplate x does not exist: create it"),
        ({"name": "gpu"}, "neither resourceClaimName nor resourceClaimTemplateName is set"),
    ],
)
def test_what_a_pod_lacks_is_an_error_that_says_what_to_do(objects: Objects, entry: Document, error: str) -> None:
    with pytest.raises((NotFound, InvalidInput), match=error):
        pod_subject(objects, pod(entry))


ANY: Document = {"name": "gpu", "resourceClaimName": "any"}


def test_nodes_that_the_pod_does_not_want_are_excluded(objects: Objects) -> None:
    expression = {"key": "zone", "operator": "NotIn", "values": ["a"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert excluded(objects, pod(ANY)) == {}
    assert excluded(objects, pod(ANY, nodeName="n1")) == {"n2": "the pod is bound to node n1"}
    assert excluded(objects, pod(ANY, nodeSelector={"zone": "b"})) == {"n1": "the pod's nodeSelector does not match"}
    assert excluded(objects, pod(ANY, affinity=affinity)) == {"n1": "the pod's node affinity does not match"}


def test_nodes_where_allocated_devices_cannot_be_used_are_excluded(objects: Objects) -> None:
    training = {"name": "gpu", "resourceClaimName": "training"}
    assert excluded(objects, pod(training)) == {"n2": "the allocated devices of claim training cannot be used there"}
