import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state import go_json
from devlet.state.go_json import Malformed, Members, Number


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"\xef\xbb\xbf{}", "it begins with a byte order mark"),
        (b"{}x", "it is not JSON at line 1, column 3: extra data"),
        (b'{"a":', "it is not JSON at line 1, column 6: expecting value"),
        (b'{"a":NaN}', "NaN is not JSON"),
        (b'{"a":"b', "it is not JSON at line 1, column 6: unterminated string"),
        (b"[" * 100_000, "it is nested too deeply"),
        ("{}".encode("utf-16"), "it is not JSON at line 1, column 1: expecting value"),
        (b'{"a":"\x01"}', "it is not JSON at line 1, column 7: invalid control character"),
    ],
)
def test_json_that_go_does_not_parse_is_refused(blob: bytes, reason: str) -> None:
    with pytest.raises(Malformed) as e:
        go_json.parse(blob)
    assert str(e.value) == reason


def test_fields_are_kept_in_order_even_if_repeated() -> None:
    assert go_json.parse(b'{"a":1,"b":null,"a":2.0}') == Members([("a", "1"), ("b", None), ("a", "2.0")])


@pytest.mark.parametrize("name", ["PodUID", "poduid", "PODUID", "podUid"])
def test_names_match_in_any_case(name: str) -> None:
    assert go_json.fold(name) == "poduid"


def test_two_letters_outside_ascii_match_ascii_letters() -> None:
    assert go_json.fold("Check\u017fum") == go_json.fold("Checksum")
    assert go_json.fold("Chec\u212asum") == go_json.fold("Checksum")
    assert go_json.fold("Checkßum") != go_json.fold("Checkssum")


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"a\ud800b"', "a\ufffdb"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud800\ud83d\ude00"', "\ufffd😀"),
        (b'"\xff\xfe"', "\ufffd\ufffd"),
        (b'"\xe2\x82"', "\ufffd\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
    ],
)
def test_invalid_unicode_becomes_the_replacement_character(blob: bytes, text: str) -> None:
    assert go_json.string(go_json.parse(blob)) == text


def test_null_leaves_strings_and_numbers_unchanged() -> None:
    assert (go_json.string(None), go_json.string(None, "a")) == ("", "a")
    assert (go_json.unsigned(None), go_json.unsigned(None, 5)) == (0, 5)
    assert go_json.strings([None, "a"]) == ("", "a")
    assert (go_json.strings(None), go_json.octets(None), go_json.pairs(None)) == (None, None, None)


@pytest.mark.parametrize(("literal", "number"), [("0", 0), ("18446744073709551615", 2**64 - 1)])
def test_an_unsigned_number_has_64_bits(literal: str, number: int) -> None:
    assert go_json.unsigned(Number(literal)) == number


@pytest.mark.parametrize("value", [*map(Number, ("-1", "-0", "1.0", "1e3", "18446744073709551616")), "1", True, []])
def test_other_numbers_are_refused(value: Any) -> None:
    with pytest.raises(Malformed, match="expected a non-negative integer"):
        go_json.unsigned(value)


@pytest.mark.parametrize(
    ("key", "number"), [("0", 0), ("-1", -1), ("+1", 1), ("007", 7), ("-9223372036854775808", -(2**63))]
)
def test_keys_are_signed_integers(key: str, number: int) -> None:
    assert go_json.integer(key) == number


@pytest.mark.parametrize("key", ["", "zero", "1_0", " 1", "1 ", "٣", "1.0", "9223372036854775808", "9" * 5000, "--1"])
def test_other_keys_are_refused(key: str) -> None:
    with pytest.raises(Malformed, match="as keys"):
        go_json.integer(key)


@pytest.mark.parametrize(("text", "blob"), [("", b""), ("CgA=", b"\n\0"), ("Cg\r\nA=\n", b"\n\0"), ("AB==", b"\0")])
def test_base64_may_have_line_breaks(text: str, blob: bytes) -> None:
    assert go_json.octets(text) == blob


@pytest.mark.parametrize("text", ["***", "CgA", "-_8=", "AAAA=", "==", "A===", "AA=A", "CgA= ", "ÄÄÄÄ", "AAAA===="])
def test_other_base64_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="base64"):
        go_json.octets(text)


@pytest.mark.parametrize(
    ("function", "value", "reason"),
    [
        (go_json.pairs, [], "expected an object, found a list"),
        (go_json.pairs, "a", "expected an object, found a string"),
        (go_json.items, Members(), "expected a list, found an object"),
        (go_json.string, Number("1"), "expected a string, found the number 1"),
        (go_json.string, False, "expected a string, found false"),
        (go_json.octets, [], "expected a string, found a list"),
    ],
)
def test_a_value_of_another_type_is_refused(function: Any, value: Any, reason: str) -> None:
    with pytest.raises(Malformed) as e:
        function(value)
    assert str(e.value) == reason


def test_errors_name_the_place() -> None:
    with pytest.raises(Malformed) as e, go_json.inside("Data"), go_json.inside("List"), go_json.inside("[3]"):
        go_json.pairs("a")
    assert str(e.value) == "Data.List[3]: expected an object, found a string"


def test_json_is_encoded_safely_for_html() -> None:
    assert go_json.dump(["<&>\u2028\u2029", "\x00\t\n\x7f é"]) == (
        b'["\\u003c\\u0026\\u003e\\u2028\\u2029","\\u0000\\t\\n\x7f ' + "é".encode() + b'"]'
    )


@given(st.recursive(st.text() | st.none(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=20))
def test_encoded_data_is_decoded_unchanged(value: Any) -> None:
    assert json.loads(go_json.dump(value)) == value


@given(st.text(alphabet=st.characters(categories=["Cs", "Lu"])))
def test_strings_that_are_not_utf8_are_encoded_with_the_replacement_character(text: str) -> None:
    assert json.loads(go_json.dump(text)) == go_json.valid(text)


def test_an_unsigned_number_may_have_32_bits() -> None:
    assert go_json.unsigned(Number("4294967295"), bits=32) == 2**32 - 1
    with pytest.raises(Malformed, match="expected a non-negative integer of 32 bits, found the number 4294967296"):
        go_json.unsigned(Number("4294967296"), bits=32)


def test_a_signed_number_has_64_bits() -> None:
    assert [go_json.signed(value, 5) for value in (None, Number("-1"), Number(str(2**63 - 1)))] == [5, -1, 2**63 - 1]
    for value in (Number(str(2**63)), Number("1.0"), Number("1e3"), "1", True, Members()):
        with pytest.raises(Malformed, match="expected an integer of 64 bits, found "):
            go_json.signed(value)


def test_a_set_is_a_map_to_structs() -> None:
    found = Members([("a", Members([("ignored", None)])), ("b", None), ("\ud800", Members())])
    assert go_json.keys(found) == frozenset({"a", "b", "\ufffd"})
    assert go_json.keys(Members(), frozenset({"c"})) == frozenset({"c"})
    assert (go_json.keys(Members()), go_json.keys(None, frozenset({"c"}))) == (frozenset(), None)
    with pytest.raises(Malformed, match="expected an object, found true"):
        go_json.keys(Members([("a", True)]))
