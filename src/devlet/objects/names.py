"""Rules for names, one function per kind of name, with the messages of a Kubernetes API server.

A rule takes a string and returns the errors; an empty result means that the name is valid. Errors that start with
`TOO_LONG` belong under the reason "Too long", all others under "Invalid value". The caller handles empty names: most
fields report "Required value" for them instead of calling a rule. Lengths are counted in bytes.
"""

import re
from collections.abc import Callable
from functools import lru_cache, wraps

Errors = tuple[str, ...]
Rule = Callable[[str], Errors]

TOO_LONG = "may not be more than "

DNS_LABEL_MAX = 63
DNS_SUBDOMAIN_MAX = 253
DRIVER_NAME_MAX = 63
POOL_NAME_MAX = 253
DEVICE_ID_MAX = 32

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
GENERATED_PREFIX_MAX = 58

# Only short strings are cached, so that a client cannot fill the memory with names.
_REMEMBERED_LENGTH = 512
_REMEMBERED_COUNT = 4096

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_label = re.compile(_LABEL).fullmatch
_subdomain = re.compile(_SUBDOMAIN).fullmatch
_dns1035_label = re.compile(_DNS1035_LABEL).fullmatch
_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_qualified = re.compile(_QUALIFIED).fullmatch
_label_value = re.compile(_LABEL_VALUE).fullmatch
_config_key = re.compile(_CONFIG_KEY).fullmatch
_env_var = re.compile(r"[ -<>-~]*").fullmatch
_uuid = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_hex_groups = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_loose_uuid = re.compile(rf"{_hex_groups}|\{{{_hex_groups}\}}|(?i:urn:uuid:){_hex_groups}|[0-9a-fA-F]{{32}}").fullmatch


def _remembered(check: Rule) -> Rule:
    known = lru_cache(_REMEMBERED_COUNT)(check)

    @wraps(check)
    def rule(value: str) -> Errors:
        return known(value) if len(value) <= _REMEMBERED_LENGTH else check(value)

    return rule


def _size(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode(errors="surrogatepass"))


def _at_most(limit: int, value: str, unit: str = "characters") -> list[str]:
    """Check the length. The API server's messages say bytes for labels and characters otherwise, but it always counts
    bytes."""
    return [f"must be no more than {limit} {unit}"] if _size(value) > limit else []


def _too_long(limit: int, value: str) -> list[str]:
    return [f"{TOO_LONG}{limit} bytes"] if _size(value) > limit else []


def _shape(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


_ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"
_LABEL_SHAPE = _shape(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_SHAPE = _shape(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    + _ALPHANUMERIC_ENDS,
    _SUBDOMAIN,
    "example.com",
)
_DNS1035_SHAPE = _shape(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _DNS1035_LABEL,
    "my-name",
    "abc-123",
)
_C_IDENTIFIER_SHAPE = _shape(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_QUALIFIED_SHAPE = _shape(
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_SHAPE = _shape(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    + _ALPHANUMERIC_ENDS,
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_SHAPE = _shape(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)


@_remembered
def dns_label(value: str) -> Errors:
    """Check the name of a namespace, device, request or container: at most 63 bytes, no dots."""
    errors = _at_most(DNS_LABEL_MAX, value)
    if not _label(value):
        errors.append("must not contain dots" if _subdomain(value) else _LABEL_SHAPE)
    return tuple(errors)


@_remembered
def dns_subdomain(value: str) -> Errors:
    """Check most object names: labels joined by dots, at most 253 bytes."""
    return tuple(_subdomain_errors(value, "characters"))


def _subdomain_errors(value: str, unit: str) -> list[str]:
    errors = _at_most(DNS_SUBDOMAIN_MAX, value, unit)
    if not _subdomain(value):
        errors.append(_SUBDOMAIN_SHAPE)
    return errors


@_remembered
def dns1035_label(value: str) -> Errors:
    """Check the name of a service: a DNS label that starts with a letter."""
    errors = _at_most(DNS_LABEL_MAX, value)
    if not _dns1035_label(value):
        errors.append(_DNS1035_SHAPE)
    return tuple(errors)


@_remembered
def c_identifier(value: str) -> Errors:
    return () if _c_identifier(value) else (_C_IDENTIFIER_SHAPE,)


@_remembered
def qualified_name(value: str) -> Errors:
    """Check a finalizer or the key of a label, taint or condition: `name` or `example.com/name`."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key {_QUALIFIED_SHAPE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    errors: list[str] = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += [f"prefix part {error}" for error in _subdomain_errors(prefix, "bytes")]
    if not name:
        errors.append("name part must be non-empty")
    errors += [f"name part {error}" for error in _at_most(DNS_LABEL_MAX, name, "bytes")]
    if not _qualified(name):
        errors.append(f"name part {_QUALIFIED_SHAPE}")
    return tuple(errors)


label_key = qualified_name


@_remembered
def annotation_key(value: str) -> Errors:
    """Check an annotation key: like `qualified_name`, but the domain may have upper-case letters."""
    return qualified_name(value.lower() if value.isascii() else value)


@_remembered
def label_value(value: str) -> Errors:
    errors = _at_most(DNS_LABEL_MAX, value, "bytes")
    if not _label_value(value):
        errors.append(_LABEL_VALUE_SHAPE)
    return tuple(errors)


@_remembered
def driver_name(value: str) -> Errors:
    """Check a driver's name: at most 63 bytes. Upper case is accepted for the sake of old drivers."""
    folded = value.lower() if value.isascii() else value
    return (*_too_long(DRIVER_NAME_MAX, value), *dns_subdomain(folded))


@_remembered
def pool_name(value: str) -> Errors:
    """Check a pool's name: DNS subdomains joined by `/`, at most 253 bytes in all."""
    errors = _too_long(POOL_NAME_MAX, value)
    for segment in value.split("/"):
        errors += dns_subdomain(segment)
    return tuple(dict.fromkeys(errors))


def _device_identifier(value: str) -> Errors:
    return (*_too_long(DEVICE_ID_MAX, value), *c_identifier(value))


@_remembered
def device_qualified_name(value: str) -> Errors:
    """Check the key of an attribute or capacity: `name`, in the driver's domain, or `domain/name`."""
    domain, slash, name = value.rpartition("/")
    if not slash:
        return _device_identifier(value)
    # The reference accepts anything with a second slash.
    if "/" in domain:
        return ("must be a name, or a domain and a name separated by one slash",)
    return (
        *(driver_name(domain) if domain else ("the domain must not be empty",)),
        *(_device_identifier(name) if name else ("the name must not be empty",)),
    )


@_remembered
def fully_qualified_device_name(value: str) -> Errors:
    """Check the name that a constraint refers to: `domain/name`."""
    errors = device_qualified_name(value)
    if "/" not in value:
        errors += ("a fully qualified name must be a domain and a name separated by a slash",)
    return errors


@_remembered
def extended_resource_name(value: str) -> Errors:
    """Check an extended resource: `domain/name` outside of kubernetes.io. Its quota `requests.domain/name` must also be
    a valid name."""
    native = "/" not in value or "kubernetes.io/" in value
    if native or value.startswith("requests.") or qualified_name(f"requests.{value}"):
        return ("must be a valid extended resource name",)
    return ()


@_remembered
def uuid(value: str) -> Errors:
    """Check a UUID (RFC 4122) in its normalised form."""
    if _uuid(value):
        return ()
    if _loose_uuid(value):
        return (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
            "with lowercase hexadecimal characters",
        )
    if _size(value) not in (32, 36, 38, 45):
        return (f"error validating uid: invalid UUID length: {_size(value)}",)
    return ("error validating uid: invalid UUID format",)


@_remembered
def path_segment(value: str) -> Errors:
    """Check that the name is safe as one segment of a URL path."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{character}'" for character in "/%" if character in value)


@_remembered
def env_var_name(value: str) -> Errors:
    """Check an environment variable: printable ASCII other than `=`."""
    if not value:
        return ("environment variable name must be non-empty",)
    if not _env_var(value):
        return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)
    return ()


@_remembered
def config_key(value: str) -> Errors:
    """Check a key of ConfigMap or Secret data; these become file names."""
    errors = _at_most(DNS_SUBDOMAIN_MAX, value)
    if not _config_key(value):
        errors.append(_CONFIG_KEY_SHAPE)
    if value in (".", ".."):
        errors.append(f"must not be '{value}'")
    elif value.startswith(".."):
        errors.append("must not start with '..'")
    return tuple(errors)


def generate_name(rule: Rule, prefix: str) -> Errors:
    """Check `metadata.generateName` for objects named by `rule`. It follows the rule but may end in dashes."""
    return rule(prefix.rstrip("-"))


def generated_name(prefix: str, suffix: str) -> str:
    """Return the name for `metadata.generateName`; `suffix` is `SUFFIX_LENGTH` random characters of
    `SUFFIX_ALPHABET`."""
    return prefix[:GENERATED_PREFIX_MAX] + suffix
