from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import pod
from devlet.objects.validation.field_errors import duplicate, forbidden, invalid, not_supported, required, too_many

CONTAINER: Document = {"name": "c", "image": "busybox"}
SPEC: Document = {"containers": [CONTAINER], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}
AFFINITY = "spec.affinity.nodeAffinity"


def check(annotations: Document | None = None, **changes: Any) -> list[Cause]:
    return list(pod.check({"metadata": {"annotations": annotations}, "spec": {**SPEC, **changes}}))


def test_a_pod_with_claims_is_accepted() -> None:
    causes = check(
        volumes=[{"name": "v", "emptyDir": {}}],
        resourceClaims=[{"name": "a", "resourceClaimName": "x"}, {"name": "b", "resourceClaimTemplateName": "y"}],
        initContainers=[{**CONTAINER, "name": "i", "resources": {"claims": [{"name": "a"}]}}],
        containers=[{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        nodeSelector={"a.io/b": "c"},
        nodeName="node-1",
    )
    assert causes == []


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"containers": []}, required("spec.containers")),
        ({"containers": [CONTAINER, CONTAINER]}, duplicate("spec.containers[1].name", "c")),
        ({"initContainers": [CONTAINER]}, duplicate("spec.containers[0].name", "c")),
        ({"containers": [{"name": "c"}]}, required("spec.containers[0].image")),
        (
            {"restartPolicy": "Sometimes"},
            not_supported("spec.restartPolicy", "Sometimes", ("Always", "OnFailure", "Never")),
        ),
        ({"restartPolicy": ""}, required("spec.restartPolicy")),
        (
            {"dnsPolicy": "X"},
            not_supported("spec.dnsPolicy", "X", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
        ),
        ({"nodeSelector": {"a": "b c"}}, invalid("spec.nodeSelector", "b c", names.label_value("b c")[0])),
        ({"nodeName": "A"}, invalid("spec.nodeName", "A", names.dns_subdomain("A")[0])),
        ({"hostname": "a.b"}, invalid("spec.hostname", "a.b", "must not contain dots")),
        (
            {"activeDeadlineSeconds": 0},
            invalid("spec.activeDeadlineSeconds", 0, "must be between 1 and 2147483647, inclusive"),
        ),
        ({"volumes": [{"emptyDir": {}}]}, required("spec.volumes[0].name")),
        ({"volumes": [{"name": "v", "emptyDir": {}}] * 2}, duplicate("spec.volumes[1].name", "v")),
        ({"volumes": [{"name": "v"}]}, required("spec.volumes[0]", "must specify a volume type")),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {}}]},
            forbidden("spec.volumes[0].hostPath", "may not specify more than 1 volume type"),
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            required(
                f"{AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
                "must have at least one node selector term",
            ),
        ),
        (
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0}]}}},
            invalid(
                f"{AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
                0,
                "must be in the range 1-100",
            ),
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Like"}]},
            not_supported("spec.tolerations[0].operator", "Like", ("Equal", "Exists")),
        ),
    ],
)
def test_a_bad_pod_is_refused(changes: Document, cause: Cause) -> None:
    assert check(**changes) == [cause]


NEITHER, BOTH = {"name": "a"}, {"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}
GOOD = {"name": "a", "resourceClaimName": "x"}


@pytest.mark.spec("KA-7.4")
@pytest.mark.parametrize(
    ("claims", "cause"),
    [
        (
            [NEITHER],
            invalid(
                "spec.resourceClaims[0]",
                NEITHER,
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            ),
        ),
        (
            [BOTH],
            invalid(
                "spec.resourceClaims[0]",
                BOTH,
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
        ),
        ([GOOD, GOOD], duplicate("spec.resourceClaims[1].name", "a")),
        ([{**GOOD, "name": ""}], required("spec.resourceClaims[0].name")),
        ([{**GOOD, "name": "A"}], invalid("spec.resourceClaims[0].name", "A", names.dns_label("A")[0])),
        (
            [{**GOOD, "resourceClaimName": "A"}],
            invalid("spec.resourceClaims[0].resourceClaimName", "A", names.dns_subdomain("A")[0]),
        ),
    ],
)
def test_a_claim_of_a_pod_has_a_name_and_one_source(claims: list[Document], cause: Cause) -> None:
    assert check(resourceClaims=claims) == [cause]


def test_a_static_pod_has_no_claims() -> None:
    causes = check({pod.MIRROR_ANNOTATION: "x"}, resourceClaims=[GOOD])
    assert causes == [forbidden("spec.resourceClaims", "static pods do not support resource claims")]


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"ephemeralContainers": [{}]}, forbidden("spec.ephemeralContainers", "cannot be set on create")),
        (
            {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
            forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"),
        ),
        (
            {"schedulingGates": [{"name": "a b"}]},
            invalid("spec.schedulingGates[0]", "a b", names.qualified_name("a b")[0]),
        ),
    ],
)
def test_a_new_pod_has_more_to_respect(spec: Document, cause: Cause) -> None:
    assert list(pod.check_create({"spec": spec})) == [cause]


def test_the_objects_in_the_spec_of_a_new_pod_are_limited() -> None:
    def created(ports: int) -> list[Cause]:
        listed = [{"containerPort": 1 + i, "protocol": "TCP"} for i in range(ports)]
        return list(pod.check_create({"spec": {"containers": [{"name": "c", "image": "i", "ports": listed}]}}))

    fits = pod.SPEC_OBJECTS_MAX - 2  # the spec and its container are objects as well
    assert created(fits) == []
    assert created(fits + 1) == [too_many("spec", pod.SPEC_OBJECTS_MAX + 1, pod.SPEC_OBJECTS_MAX)]
