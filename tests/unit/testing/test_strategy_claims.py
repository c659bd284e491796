"""That the API accepts them is tested with `strategies`; here, what else is promised."""

from hypothesis import given

from devlet.objects.documents import Document
from devlet.objects.validation.claim import request_references
from devlet.testing import strategy_claims as own
from devlet.testing.strategy_devices import devices
from tests.support.allocation.selectors import selector_matches


@given(selector=own.selectors("gpu.example.com"), device=devices())
def test_a_selector_is_true_or_false_for_every_device(selector: Document, device: Document) -> None:
    matches = selector_matches({})(selector["cel"]["expression"], device, "gpu.example.com")
    assert matches in (True, False)


@given(spec=own.claim_specs())
def test_constraints_and_parameters_name_requests_of_the_claim(spec: Document) -> None:
    known = request_references(spec["devices"]["requests"])
    parts = [*spec["devices"].get("constraints", ()), *spec["devices"].get("config", ())]
    assert {name for part in parts for name in part.get("requests", ())} <= known


@given(claim=own.resource_claims(name="mine", device_class="gpu", max_requests=1))
def test_a_claim_can_be_named_and_limited(claim: Document) -> None:
    (request,) = claim["spec"]["devices"]["requests"]
    wishes = [request["exactly"]] if "exactly" in request else request["firstAvailable"]
    assert claim["metadata"]["name"] == "mine"
    assert {wish["deviceClassName"] for wish in wishes} == {"gpu"}


@given(template=own.templates(name="mine", device_class="gpu"), found=own.device_classes(name="gpu"))
def test_templates_and_classes_can_be_named(template: Document, found: Document) -> None:
    assert (template["metadata"]["name"], found["metadata"]["name"]) == ("mine", "gpu")


@given(request=own.requests("r"))
def test_a_request_asks_for_something(request: Document) -> None:
    assert request["name"] == "r" and ("exactly" in request) is not ("firstAvailable" in request)


@given(config=own.configs(["a", "a/b"]))
def test_parameters_are_for_a_driver(config: Document) -> None:
    assert config["opaque"]["driver"] and set(config.get("requests", ())) <= {"a", "a/b"}
