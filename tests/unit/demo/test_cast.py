import pytest

from devlet.demo import cast
from devlet.objects.documents import Document


@pytest.mark.parametrize("document", [cast.claim("x"), cast.template("x"), cast.pod("x", resourceClaimName="c")])
def test_what_lives_in_a_namespace_says_so(document: Document) -> None:
    assert document["metadata"] == {"name": "x", "namespace": cast.NAMESPACE}


def test_a_claim_asks_for_the_class_of_the_slices_driver() -> None:
    request = cast.claim("x")["spec"]["devices"]["requests"][0]
    assert request["exactly"]["deviceClassName"] == cast.device_class()["metadata"]["name"]
    assert cast.DRIVER in cast.device_class()["spec"]["selectors"][0]["cel"]["expression"]


def test_a_slice_holds_the_devices_it_is_given() -> None:
    spec = cast.slice_of("gpu-0", "gpu-7", generation=3)["spec"]
    assert [device["name"] for device in spec["devices"]] == ["gpu-0", "gpu-7"]
    assert spec["pool"]["generation"] == 3
