import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.runtime.cdi.names import QualifiedName, annotated_devices, annotation, parse, split_kind

WORDS = st.from_regex(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?", fullmatch=True)
DEVICES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?", fullmatch=True)


@pytest.mark.spec("DN-7.2.1")
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("vendor.com/gpu=0", ("vendor.com", "gpu", "0")),
        ("v/g=d", ("v", "g", "d")),
        ("ven_dor-1.com/gpu.v1=0000:01:00.0", ("ven_dor-1.com", "gpu.v1", "0000:01:00.0")),
    ],
)
def test_a_qualified_name_is_vendor_class_and_device(name: str, parts: tuple[str, str, str]) -> None:
    assert parse(name) == QualifiedName(*parts)
    assert (str(parse(name)), parse(name).kind) == (name, name.partition("=")[0])


@pytest.mark.spec("DN-7.2.1")
@pytest.mark.parametrize(
    "name",
    [
        *("", "=", "/", "/=", "gpu", "vendor/gpu", "vendor=0", "vendor/gpu=", "/gpu=0", "vendor/=0", "/dev/sda=1"),
        *("vendor/gpu=a=b", "vendor/gpu/x=0", "vendor/gpu=a/b", "vendor/gpu=-a", "vendor/gpu=a:", "vendor/gpu=a\n"),
        *("vendor./gpu=0", "_vendor/gpu=0", "vendor/gpu_=0", "vendor/ gpu=0", "vendör/gpu=0", "vendor/gpu=ä"),
        *("vendor/gpu=٣", "vendor:x/gpu=0"),
    ],
)
def test_any_other_name_is_invalid(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not the name of a CDI device"):
        parse(name)


@pytest.mark.spec("DN-7.2.2")
def test_a_driver_name_that_starts_with_a_digit_is_not_a_vendor() -> None:
    with pytest.raises(InvalidInput, match=r"vendor .3d\.example\.com. must be"):
        parse("3d.example.com/gpu=0")


@given(WORDS, WORDS, DEVICES)
def test_a_formatted_name_is_parsed_again(vendor: str, class_name: str, device: str) -> None:
    assert parse(f"{vendor}/{class_name}={device}") == QualifiedName(vendor, class_name, device)
    assert split_kind(f"{vendor}/{class_name}") == (vendor, class_name)


@given(st.text(alphabet="aZ0_-.:/= é", max_size=12))
def test_a_parsed_name_is_formatted_unchanged(name: str) -> None:
    try:
        assert str(parse(name)) == name
    except InvalidInput:
        pass


@pytest.mark.spec("DN-7.1.2")
def test_the_devices_of_a_claim_are_joined_under_a_key_of_driver_and_claim() -> None:
    key, value = annotation("gpu.example.com", "1234", ["gpu.example.com/gpu=0", "gpu.example.com/gpu=1"])
    assert (key, value) == ("cdi.k8s.io/gpu.example.com_1234", "gpu.example.com/gpu=0,gpu.example.com/gpu=1")
    assert annotation("a/b", "c", [])[0] == "cdi.k8s.io/a_b_c"


@pytest.mark.parametrize(("driver", "claim"), [("d" * 60, "1234"), ("-d", "1"), ("d", "1-"), ("d d", "1")])
def test_an_invalid_annotation_key_is_refused(driver: str, claim: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be an annotation"):
        annotation(driver, claim, [])
    assert len(annotation("d" * 58, "1234", [])[0]) == len("cdi.k8s.io/") + 63


@pytest.mark.spec("DN-7.1.2")
def test_devices_of_annotations_are_listed_once_in_the_order_of_keys() -> None:
    given = {"cdi.k8s.io/z": "v/c=1,v/c=2", "cdi.k8s.io/a": "v/c=3,v/c=1", "other": "nonsense"}
    assert annotated_devices(given) == ("v/c=3", "v/c=1", "v/c=2")
    assert annotated_devices({}) == ()


@pytest.mark.parametrize("value", ["", "v/c=1,", "v/c", "v/c=1, v/c=2"])
def test_an_annotation_with_an_invalid_name_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"annotation cdi\.k8s\.io/x: "):
        annotated_devices({"cdi.k8s.io/x": value})
