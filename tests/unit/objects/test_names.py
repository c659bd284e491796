"""Rules for names. Messages were checked against Kubernetes v1.36."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects import names
from devlet.objects.names import Rule

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
C_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NORMALIZED = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)
SLASHES = "must be a name, or a domain and a name separated by one slash"
FULLY = "a fully qualified name must be a domain and a name separated by a slash"

GOOD: list[tuple[Rule, list[str]]] = [
    (names.dns_label, ["a", "0", "a-b", "gpu-0", "a" * 63]),
    (names.dns_subdomain, ["a", "a.b", "gpu.example.com", "0-a.1", ".".join(["a" * 50] * 4)]),
    (names.dns1035_label, ["a", "a-0"]),
    (names.c_identifier, ["_", "a", "memory_2", "A" * 100]),
    (names.qualified_name, ["a", "A_b.c-d", "example.com/Name", "a" * 63, f"{'a.' * 126}a/b"]),
    (names.annotation_key, ["Example.COM/name"]),
    (names.label_value, ["", "a", "A_b.c-d", "a" * 63]),
    (names.driver_name, ["gpu.example.com", "GPU.Example.com", "a" * 63]),
    (names.pool_name, ["node-1", "node-1/gpus", "a.b/c.d/e", "a" * 253]),
    (names.device_qualified_name, ["memory", "example.com/memory", "_", "GPU.example.com/x", "a" * 32]),
    (names.fully_qualified_device_name, ["example.com/model", f"{'d' * 63}/{'a' * 32}"]),
    (names.extended_resource_name, ["example.com/gpu", "a/b", "vendor.io/A_b"]),
    (names.uuid, ["00000000-0000-0000-0000-000000000000", "8c6e4a3c-9b0d-4f8e-a1b2-c3d4e5f60718"]),
    (names.path_segment, ["a", "...", "with space", "ü"]),
    (names.env_var_name, ["A", "1", "my.env-name", "a b", "~"]),
    (names.config_key, ["a.txt", "_", ".hidden", "a" * 253]),
]

BAD: list[tuple[Rule, str, list[str]]] = [
    (names.dns_label, "", [LABEL]),
    (names.dns_label, "A", [LABEL]),
    (names.dns_label, "-a", [LABEL]),
    (names.dns_label, "a-", [LABEL]),
    (names.dns_label, "a\n", [LABEL]),
    (names.dns_label, "ä", [LABEL]),
    (names.dns_label, "a.b", ["must not contain dots"]),
    (names.dns_label, "a" * 64, ["must be no more than 63 characters"]),
    (names.dns_label, "A" * 64, ["must be no more than 63 characters", LABEL]),
    (names.dns_subdomain, "", [SUBDOMAIN]),
    (names.dns_subdomain, "a..b", [SUBDOMAIN]),
    (names.dns_subdomain, ".a", [SUBDOMAIN]),
    (names.dns_subdomain, "a_b", [SUBDOMAIN]),
    (names.dns_subdomain, "a.b\n", [SUBDOMAIN]),
    (names.dns_subdomain, "a" * 254, ["must be no more than 253 characters"]),
    (names.c_identifier, "1a", [C_IDENTIFIER]),
    (names.c_identifier, "a-b", [C_IDENTIFIER]),
    (names.c_identifier, "a\n", [C_IDENTIFIER]),
    (names.qualified_name, "", ["name part must be non-empty", f"name part {QUALIFIED}"]),
    (names.qualified_name, "/a", ["prefix part must be non-empty"]),
    (names.qualified_name, "A.com/b", [f"prefix part {SUBDOMAIN}"]),
    (names.qualified_name, "a/", ["name part must be non-empty", f"name part {QUALIFIED}"]),
    (names.qualified_name, "a" * 64, ["name part must be no more than 63 bytes"]),
    (names.qualified_name, f"{'a' * 254}/b", ["prefix part must be no more than 253 bytes"]),
    (
        names.qualified_name,
        "a/b/c",
        [f"a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
    ),
    (names.label_value, "-", [LABEL_VALUE]),
    (names.label_value, "a b", [LABEL_VALUE]),
    (names.label_value, "a\n", [LABEL_VALUE]),
    (names.label_value, "a" * 64, ["must be no more than 63 bytes"]),
    (names.driver_name, "a" * 64, ["may not be more than 63 bytes"]),
    (names.driver_name, "a_b", [SUBDOMAIN]),
    # The Kelvin sign becomes an ASCII k in lower case.
    (names.driver_name, "\u212a", [SUBDOMAIN]),
    (names.pool_name, "a/", [SUBDOMAIN]),
    (names.pool_name, "A/B", [SUBDOMAIN]),
    (names.pool_name, f"{'a' * 200}/{'b' * 53}", ["may not be more than 253 bytes"]),
    (names.device_qualified_name, "a" * 33, ["may not be more than 32 bytes"]),
    (names.device_qualified_name, "a-b", [C_IDENTIFIER]),
    (names.device_qualified_name, "/a", ["the domain must not be empty"]),
    (names.device_qualified_name, "a.b/", ["the name must not be empty"]),
    (names.device_qualified_name, "/", ["the domain must not be empty", "the name must not be empty"]),
    (names.device_qualified_name, f"{'d' * 64}/a", ["may not be more than 63 bytes"]),
    (names.device_qualified_name, "a/b/c", [SLASHES]),
    (names.device_qualified_name, "//", [SLASHES]),
    (names.fully_qualified_device_name, "model", [FULLY]),
    (names.fully_qualified_device_name, "a-b", [C_IDENTIFIER, FULLY]),
    (names.uuid, "", ["error validating uid: invalid UUID length: 0"]),
    (names.uuid, "8C6E4A3C-9b0d-4f8e-a1b2-c3d4e5f60718", [NORMALIZED]),
    (names.uuid, "8c6e4a3c9b0d4f8ea1b2c3d4e5f60718", [NORMALIZED]),
    (names.uuid, "{8c6e4a3c-9b0d-4f8e-a1b2-c3d4e5f60718}", [NORMALIZED]),
    (names.uuid, "urn:uuid:8c6e4a3c-9b0d-4f8e-a1b2-c3d4e5f60718", [NORMALIZED]),
    (names.uuid, "8c6e4a3c-9b0d-4f8e-a1b2-c3d4e5f6071g", ["error validating uid: invalid UUID format"]),
    (names.path_segment, ".", ["may not be '.'"]),
    (names.path_segment, "..", ["may not be '..'"]),
    (names.path_segment, "a/b%c", ["may not contain '/'", "may not contain '%'"]),
    (names.env_var_name, "", ["environment variable name must be non-empty"]),
    (names.config_key, "..", ["must not be '..'"]),
    (names.config_key, "..a", ["must not start with '..'"]),
    (names.config_key, "a" * 254, ["must be no more than 253 characters"]),
]


@pytest.mark.spec("AL-2-names")
@pytest.mark.parametrize(("rule", "texts"), GOOD)
def test_good_names_have_no_errors(rule: Rule, texts: list[str]) -> None:
    assert {text: rule(text) for text in texts} == dict.fromkeys(texts, ())


@pytest.mark.spec("AL-2-names")
@pytest.mark.parametrize(("rule", "text", "errors"), BAD)
def test_bad_names_get_the_words_of_the_reference(rule: Rule, text: str, errors: list[str]) -> None:
    assert list(rule(text)) == errors


@pytest.mark.parametrize(
    "text", ["gpu", "kubernetes.io/gpu", "a.kubernetes.io/gpu", "requests.a/b", "a/b/c", "A/b", ""]
)
def test_names_of_native_resources_and_quotas_are_not_extended_resources(text: str) -> None:
    assert names.extended_resource_name(text) == ("must be a valid extended resource name",)


@pytest.mark.parametrize("text", ["a=b", "ä", "a\n", "\t", "\x7f"])
def test_environment_variables_are_printable_ascii(text: str) -> None:
    assert names.env_var_name(text)


def test_lengths_count_bytes() -> None:
    assert names.dns_label("ä" * 32)[0] == "must be no more than 63 characters"
    assert names.driver_name("\ud800" * 22)[0].startswith(names.TOO_LONG)


@pytest.mark.spec("KA-3.1-name")
@pytest.mark.parametrize("prefix", ["a-", "a--", "00000-gpu.example.com-node1-", "p1-gpu-", "a"])
def test_a_prefix_may_end_in_dashes(prefix: str) -> None:
    assert names.generate_name(names.dns_subdomain, prefix) == ()


@pytest.mark.spec("KA-3.1-name")
@pytest.mark.parametrize("prefix", ["-", "--", "A-", "a.", "a.-", "_-a"])
def test_a_prefix_that_no_name_may_start_with_is_refused(prefix: str) -> None:
    assert names.generate_name(names.dns_label, prefix)
    assert names.generate_name(names.dns_subdomain, prefix)


@pytest.mark.spec("KA-3.1-name")
def test_a_generated_name_is_the_prefix_cut_to_58_and_the_suffix() -> None:
    assert names.generated_name("p1-gpu-", "rtsn9") == "p1-gpu-rtsn9"
    assert names.generated_name("a" * 100, "qv56k") == "a" * 58 + "qv56k"


@given(
    st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,70}[a-z0-9])?-?\Z"), st.text(names.SUFFIX_ALPHABET, min_size=5, max_size=5)
)
def test_a_valid_prefix_gives_a_valid_label(prefix: str, suffix: str) -> None:
    assert names.dns_label(names.generated_name(prefix, suffix)) == ()


@given(st.sampled_from([rule for rule, _ in GOOD]), st.text(max_size=80) | st.text("aZ0-._/%", max_size=300))
def test_every_string_is_checked_and_the_result_is_always_the_same(rule: Rule, text: str) -> None:
    assert rule(text) == rule(text)
    assert all(rule(text))


@given(st.text("aZ0-.\n", max_size=80))
def test_a_label_is_a_subdomain_without_dots_of_at_most_63(text: str) -> None:
    label = not names.dns_subdomain(text) and "." not in text and len(text) <= 63
    assert (not names.dns_label(text)) == label


@pytest.mark.parametrize("rule", [rule for rule, _ in GOOD])
def test_a_name_of_a_megabyte_is_checked_quickly(rule: Rule) -> None:
    for text in ("a" * 1_000_000, "a." * 500_000, "a/" * 500_000, "-" * 1_000_000):
        assert rule(text) or rule in (names.c_identifier, names.path_segment, names.env_var_name)
