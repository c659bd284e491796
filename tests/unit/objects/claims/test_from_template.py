import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from devlet.objects.claims.from_template import (
    DELETE_PROTECTION,
    ENTRY_ANNOTATION,
    claim_from_template,
    generate_name,
    is_generated_for,
)
from devlet.objects.documents import Document, copy
from devlet.objects.names import dns_label, dns_subdomain, generated_name
from devlet.objects.types.meta import ObjectMeta, OwnerReference
from devlet.objects.types.pod import Pod

POD = Pod(metadata=ObjectMeta(name="train", namespace="ns", uid="u1"))


def template(**metadata: object) -> Document:
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "unknown": [1]}}]}}
    return {"metadata": {"name": "one-gpu"}, "spec": {"spec": spec} | ({"metadata": metadata} if metadata else {})}


@pytest.mark.spec("DA-6.1d")
@pytest.mark.parametrize(
    ("pod", "entry", "expected"),
    [
        ("train", "gpu", "train-gpu-"),
        ("p" * 52, "gpu", "p" * 52 + "-gpu-"),  # 57 characters
        ("p" * 53, "gpu", "p" * 52 + "-gp"),
        ("p" * 60, "e" * 60, "p" * 28 + "-" + "e" * 28),
        ("p" * 250, "gpu", "p" * 55 + "-"),
        ("a" * 40 + "." + "b" * 40, "e" * 20, "a" * 40 + "." + "b" * 3 + "-" + "e" * 11),
        ("a" * 44 + "." + "b" * 36, "e" * 19, "a" * 44 + "-" + "e" * 10),
    ],
)
def test_long_names_are_cut_in_proportion_and_end_without_a_hyphen(pod: str, entry: str, expected: str) -> None:
    assert generate_name(pod, entry) == expected


labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(st.lists(labels, min_size=1, max_size=4).map(".".join).filter(lambda name: len(name) <= 253), labels)
def test_every_pod_and_entry_can_have_a_claim(pod: str, entry: str) -> None:
    prefix = generate_name(pod, entry)
    assert not dns_label(entry) and len(prefix) <= 58
    assert not dns_subdomain(generated_name(prefix, "abcde"))


@pytest.mark.spec("DA-6.1d")
def test_the_claim_has_labels_annotations_and_spec_of_the_template_and_the_pod_as_its_controller() -> None:
    made = claim_from_template(template(labels={"a": "b"}, annotations={"c": "d"}), POD, "gpu")
    assert made == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": "train-gpu-",
            "namespace": "ns",
            "labels": {"a": "b"},
            "annotations": {"c": "d", ENTRY_ANNOTATION: "gpu"},
            "finalizers": [DELETE_PROTECTION],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "u1", "controller": True}],
        },
        "spec": template()["spec"]["spec"],
    }


@pytest.mark.spec("DA-11.22")
def test_the_template_shares_nothing_with_the_claim() -> None:
    source = template(labels={"a": "b"}, annotations={"c": "d"})
    before = copy(source)
    made = claim_from_template(source, POD, "gpu")
    for part in (made["metadata"]["labels"], made["metadata"]["annotations"], made["spec"]["devices"]):
        part["changed"] = "yes"
    made["spec"]["devices"]["requests"][0]["exactly"]["unknown"].append(2)
    assert source == before


def test_a_template_without_metadata_gives_a_claim_without_labels() -> None:
    metadata = claim_from_template(template(), POD, "gpu")["metadata"]
    assert "labels" not in metadata and metadata["annotations"] == {ENTRY_ANNOTATION: "gpu"}


def test_a_pod_without_a_uid_owns_nothing() -> None:
    pod = Pod(metadata=ObjectMeta(name="train", namespace="ns"))
    assert "ownerReferences" not in claim_from_template(template(), pod, "gpu")["metadata"]


@pytest.mark.spec("DA-6.1c")
@pytest.mark.parametrize(
    ("annotations", "namespace", "owner", "expected"),
    [
        ({ENTRY_ANNOTATION: "gpu"}, "ns", {}, True),
        ({ENTRY_ANNOTATION: "nic"}, "ns", {}, False),
        ({}, "ns", {}, False),
        ({ENTRY_ANNOTATION: "gpu"}, "other", {}, False),
        ({ENTRY_ANNOTATION: "gpu"}, "ns", {"uid": "u2"}, False),
        ({ENTRY_ANNOTATION: "gpu"}, "ns", {"kind": "Job"}, False),
        ({ENTRY_ANNOTATION: "gpu"}, "ns", {"api_version": "v2"}, False),
        ({ENTRY_ANNOTATION: "gpu"}, "ns", {"controller": None}, False),
    ],
)
def test_a_claim_is_recognised_by_controller_namespace_and_annotation(
    annotations: dict[str, str], namespace: str, owner: dict[str, object], expected: bool
) -> None:
    fields = {"api_version": "v1", "kind": "Pod", "name": "train", "uid": "u1", "controller": True, **owner}
    references = (OwnerReference(**fields),)  # type: ignore[arg-type]
    metadata = ObjectMeta(name="c", namespace=namespace, annotations=annotations, owner_references=references)
    assert is_generated_for(metadata, POD, "gpu") is expected


@pytest.mark.parametrize(
    ("name", "annotations", "expected"),
    [
        ("train-gpu", {}, True),
        ("train-gpu", {"other": "x"}, True),
        ("train-gpu", {ENTRY_ANNOTATION: "nic"}, False),
        ("train-nic", {}, False),
        ("train-gpu-x7f2p", {}, False),
    ],
)
def test_a_claim_of_kubernetes_1_27_is_recognised_by_controller_and_name(
    name: str, annotations: dict[str, str], expected: bool
) -> None:
    owner = OwnerReference(api_version="v1", kind="Pod", name="train", uid="u1", controller=True)
    metadata = ObjectMeta(name=name, namespace="ns", annotations=annotations, owner_references=(owner,))
    assert is_generated_for(metadata, POD, "gpu") is expected
    assert not is_generated_for(structs.replace(metadata, owner_references=()), POD, "gpu")
