from tests.support.claim_specimens import GPU, NIC, claim, device, key, pod


def test_a_pod_has_the_claims_that_are_named_and_its_container_uses_them() -> None:
    made = pod("u", {"a": "claim-a", "b": "claim-b"}, uses=[("a", "r"), ("b", "")])
    assert [(e.name, e.resource_claim_name) for e in made.spec.resource_claims] == [("a", "claim-a"), ("b", "claim-b")]
    assert [(c.name, c.request) for c in made.spec.containers[0].resources.claims] == [("a", "r"), ("b", "")]
    assert made.uid == "u"


def test_a_claim_has_a_device_of_each_driver_and_is_reserved_for_its_pods() -> None:
    made = claim("c", drivers=(GPU, NIC), pods=("u",))
    assert [(r.driver, r.device) for r in made.results] == [(GPU, "dev-c"), (NIC, "dev-c")]
    assert [consumer.uid for consumer in made.status.reserved_for] == ["u"]
    assert claim("c", allocated=False).results == ()


def test_a_device_without_cdi_names_has_none() -> None:
    assert device("d").cdi_devices is None
    assert device("d", "v/c=d").cdi_devices == ("v/c=d",)
    assert str(key("c")) == "default/c"
