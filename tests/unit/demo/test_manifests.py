import pytest

from devlet.demo import manifests
from devlet.objects.documents import Document


@pytest.mark.parametrize(
    "document", [manifests.claim("x"), manifests.template("x"), manifests.pod("x", resourceClaimName="c")]
)
def test_namespaced_objects_name_the_namespace(document: Document) -> None:
    assert document["metadata"] == {"name": "x", "namespace": manifests.NAMESPACE}


def test_a_claim_asks_for_the_class_of_the_gpu_driver() -> None:
    request = manifests.claim("x")["spec"]["devices"]["requests"][0]
    assert request["exactly"] == {"deviceClassName": manifests.device_class()["metadata"]["name"]}
    assert manifests.GPU_DRIVER in manifests.device_class()["spec"]["selectors"][0]["cel"]["expression"]


def test_a_template_can_ask_for_memory() -> None:
    request = manifests.template("x", "80Gi")["spec"]["spec"]["devices"]["requests"][0]
    assert 'quantity("80Gi")' in request["exactly"]["selectors"][0]["cel"]["expression"]


def test_a_pod_asks_only_for_what_the_arguments_say() -> None:
    plugin, claimed = manifests.pod("a", fpgas=2)["spec"], manifests.pod("b", resourceClaimTemplateName="t")["spec"]
    assert plugin["containers"][0]["resources"] == {"limits": {manifests.FPGA: "2"}}
    assert "resourceClaims" not in plugin
    assert claimed["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    assert claimed["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}
