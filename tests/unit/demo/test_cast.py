import pytest

from devlet.demo import cast
from devlet.objects.documents import Document


@pytest.mark.parametrize("document", [cast.claim("x"), cast.template("x"), cast.pod("x", resourceClaimName="c")])
def test_what_lives_in_a_namespace_says_so(document: Document) -> None:
    assert document["metadata"] == {"name": "x", "namespace": cast.NAMESPACE}


def test_a_claim_asks_for_the_class_of_the_gpu_driver() -> None:
    request = cast.claim("x")["spec"]["devices"]["requests"][0]
    assert request["exactly"] == {"deviceClassName": cast.device_class()["metadata"]["name"]}
    assert cast.GPU_DRIVER in cast.device_class()["spec"]["selectors"][0]["cel"]["expression"]


def test_a_template_may_want_memory() -> None:
    request = cast.template("x", "80Gi")["spec"]["spec"]["devices"]["requests"][0]
    assert 'quantity("80Gi")' in request["exactly"]["selectors"][0]["cel"]["expression"]


def test_a_pod_asks_for_what_it_is_given_and_nothing_else() -> None:
    plugin, claimed = cast.pod("a", fpgas=2)["spec"], cast.pod("b", resourceClaimTemplateName="t")["spec"]
    assert plugin["containers"][0]["resources"] == {"limits": {cast.FPGA: "2"}}
    assert "resourceClaims" not in plugin
    assert claimed["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    assert claimed["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}
