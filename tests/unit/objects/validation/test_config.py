import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import config
from devlet.objects.validation.field_errors import invalid, invalid_omitted, required, too_long

BIG = {"s": "x" * (10240 - len('{"s":""}'))}


def opaque(parameters: object, driver: str = "gpu.example.com") -> Document:
    return {"opaque": {"driver": driver, "parameters": parameters}}


@pytest.mark.parametrize("document", [opaque({"a": 1}), opaque({}), opaque(BIG), opaque({}, "GPU.example.com")])
def test_good_configuration_is_accepted(document: Document) -> None:
    assert list(config.check(document, "c")) == []


@pytest.mark.spec("AL-2.13")
@pytest.mark.parametrize(
    ("document", "cause"),
    [
        ({}, required("c.opaque")),
        (opaque({}, ""), required("c.opaque.driver")),
        (opaque({}, "a_b"), invalid("c.opaque.driver", "a_b", names.dns_subdomain("a_b")[0])),
        ({"opaque": {"driver": "d"}}, required("c.opaque.parameters")),
        (opaque("text"), invalid_omitted("c.opaque.parameters", "must be a valid JSON object")),
        (opaque([]), invalid_omitted("c.opaque.parameters", "must be a valid JSON object")),
        (opaque({**BIG, "t": 1}), too_long("c.opaque.parameters", 10240)),
    ],
)
def test_bad_configuration_is_refused(document: Document, cause: Cause) -> None:
    assert list(config.check(document, "c")) == [cause]


def test_stored_parameters_may_have_any_size() -> None:
    assert list(config.check(opaque({**BIG, "t": 1}), "c", stored=True)) == []
