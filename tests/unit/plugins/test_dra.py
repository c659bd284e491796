from devlet.objects.identifiers import ClaimName, ClaimUID
from devlet.plugins.dra import ClaimRef, Service


def test_the_old_apis_answer_only_with_cdi_devices() -> None:
    assert [each for each in Service if each.is_legacy] == [Service.V1ALPHA3, Service.V1ALPHA2, Service.V1ALPHA1]


def test_a_claim_reference_has_namespace_name_and_uid() -> None:
    assert ClaimRef("default", ClaimName("c"), ClaimUID("u")).cdi_devices == ()
