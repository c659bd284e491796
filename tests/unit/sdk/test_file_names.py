import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.runtime.cdi.names import vendor_problem
from devlet.sdk.file_names import check_driver, check_uid, main_request, vendor

BAD = ["", "/", "a/b", "..", ".", "../../etc/passwd", "a_b", "a b", "a\0", "a\n", "-a", "é", "a" * 129]


@pytest.mark.parametrize("uid", BAD)
def test_a_uid_must_not_be_a_path(uid: str) -> None:
    with pytest.raises(InvalidInput, match="is not a claim's UID"):
        check_uid(uid)


@given(st.uuids().map(str))
def test_every_uuid_is_a_uid(uid: str) -> None:
    assert check_uid(uid) == uid


@pytest.mark.parametrize("driver", [*BAD, "Upper.example.com", "a" * 64])
def test_a_driver_name_must_be_a_dns_name(driver: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be a driver's name"):
        check_driver(driver)


@pytest.mark.parametrize("request_name", ["", "/", "/a", "a/", "a/b/c", "../a", "..", "a/..", "A", "a.b"])
def test_a_request_must_not_be_a_path(request_name: str) -> None:
    with pytest.raises(InvalidInput, match="is not the name of a request"):
        main_request(request_name)


def test_the_main_request_is_what_stands_before_the_slash() -> None:
    assert (main_request("gpu"), main_request("gpu/large")) == ("gpu", "gpu")


@pytest.mark.spec("DN-7.2.2")
def test_a_driver_that_starts_with_a_digit_gets_a_vendor_that_no_other_driver_can_have() -> None:
    assert vendor("led.example.com") == "led.example.com"
    assert vendor("3d.example.com") == "cdi_3d.example.com"
    assert vendor_problem(vendor("3d.example.com")) is None
    with pytest.raises(InvalidInput):
        check_driver(vendor("3d.example.com"))
