"""Objects without their content."""

from devlet.serve.kube_api.partial_metadata import partial_metadata, partial_metadata_list

POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"nodeName": "n"}}


def test_only_the_metadata_is_left() -> None:
    wanted = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "p"}}
    assert partial_metadata(POD) == wanted


def test_the_items_of_a_list_say_what_they_are() -> None:
    found = partial_metadata_list([POD], {"resourceVersion": "7"}, version="v1beta1")
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1beta1")
    assert found["metadata"] == {"resourceVersion": "7"}
    assert found["items"] == [partial_metadata(POD, version="v1beta1")]
