"""Rules for lists of conditions (`metav1.Condition`) and for the names of condition types."""

import re

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import (
    Causes,
    byte_length,
    duplicate,
    invalid,
    name_errors,
    not_supported,
    required,
    required_name,
    too_long,
    too_many,
)

BINDING_CONDITIONS_MAX = 4
_REASON_MAX = 1024
_MESSAGE_MAX = 32 * 1024
_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_reason = re.compile(_REASON).fullmatch


def check(conditions: list[Document], path: str, limit: int) -> Causes:
    if len(conditions) > limit:
        yield too_many(path, len(conditions), limit)
        return
    seen = set()
    for i, condition in enumerate(conditions):
        type_ = condition.get("type", "")
        if type_ in seen:
            yield duplicate(f"{path}[{i}].type", type_)
        seen.add(type_)
        yield from _check_condition(condition, f"{path}[{i}]")


def _check_condition(condition: Document, path: str) -> Causes:
    yield from required_name(f"{path}.type", condition.get("type", ""), names.qualified_name)
    if condition.get("status") not in _STATUSES:
        yield not_supported(f"{path}.status", condition.get("status", ""), _STATUSES)
    if condition.get("observedGeneration", 0) < 0:
        generation = condition["observedGeneration"]
        yield invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime", "must be set")
    yield from _check_reason(condition.get("reason", ""), f"{path}.reason")
    if byte_length(condition.get("message", "")) > _MESSAGE_MAX:
        yield too_long(f"{path}.message", _MESSAGE_MAX)


def _check_reason(reason: str, path: str) -> Causes:
    if not reason:
        yield required(path, "must be set")
    elif byte_length(reason) > _REASON_MAX:
        yield too_long(path, _REASON_MAX)
    elif not _reason(reason):
        yield invalid(
            path,
            reason,
            "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
            "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name', or 'MY_NAME', or "
            f"'MyName', or 'ReasonA,ReasonB', or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')",
        )


def check_binding(owner: Document, path: str) -> Causes:
    """Check the condition types that a device or an allocated device waits for: both lists or none, and disjoint."""
    binding, failure = owner.get("bindingConditions") or [], owner.get("bindingFailureConditions") or []
    yield from _check_types(binding, f"{path}.bindingConditions")
    yield from _check_types(failure, f"{path}.bindingFailureConditions")
    if failure and not binding:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield invalid(f"{path}.bindingConditions", None, detail)
    if binding and not failure:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield invalid(f"{path}.bindingFailureConditions", None, detail)
    for i, type_ in enumerate(failure):
        if type_ in binding:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid(f"{path}.bindingFailureConditions[{i}]", type_, detail)


def _check_types(types: list[str], path: str) -> Causes:
    if len(types) > BINDING_CONDITIONS_MAX:
        yield too_many(path, len(types), BINDING_CONDITIONS_MAX)
        return
    for i, type_ in enumerate(types):
        yield from name_errors(f"{path}[{i}]", type_, names.qualified_name)
        if type_ in types[:i]:
            yield duplicate(f"{path}[{i}]", type_)
