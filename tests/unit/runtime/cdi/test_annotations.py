import pytest

from devlet.errors import InvalidInput
from devlet.runtime.cdi.annotations import annotation, devices


@pytest.mark.spec("DN-7.1.2")
def test_the_devices_of_a_claim_are_joined_under_a_key_of_driver_and_claim() -> None:
    key, value = annotation("gpu.example.com", "1234", ["gpu.example.com/gpu=0", "gpu.example.com/gpu=1"])
    assert (key, value) == ("cdi.k8s.io/gpu.example.com_1234", "gpu.example.com/gpu=0,gpu.example.com/gpu=1")
    assert annotation("a/b", "c", [])[0] == "cdi.k8s.io/a_b_c"


@pytest.mark.parametrize(("driver", "claim"), [("d" * 60, "1234"), ("-d", "1"), ("d", "1-"), ("d d", "1")])
def test_a_key_that_is_none_is_refused(driver: str, claim: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be an annotation"):
        annotation(driver, claim, [])
    assert len(annotation("d" * 58, "1234", [])[0]) == len("cdi.k8s.io/") + 63


@pytest.mark.spec("DN-7.1.2")
def test_devices_of_annotations_come_once_and_in_the_order_of_keys() -> None:
    given = {"cdi.k8s.io/z": "v/c=1,v/c=2", "cdi.k8s.io/a": "v/c=3,v/c=1", "other": "nonsense"}
    assert devices(given) == ("v/c=3", "v/c=1", "v/c=2")
    assert devices({}) == ()


@pytest.mark.parametrize("value", ["", "v/c=1,", "v/c", "v/c=1, v/c=2"])
def test_an_annotation_with_a_bad_name_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"annotation cdi\.k8s\.io/x: "):
        devices({"cdi.k8s.io/x": value})
