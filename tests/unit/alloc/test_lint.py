import pytest

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.alloc.lint import Finding, Severity, lint
from devlet.objects.documents import Document, view
from devlet.objects.types.slice import Device

D = 'device.attributes["gpu.example.com"]'
GPU: Document = {
    "attributes": {"model": {"string": "a100"}, "index": {"int": 1}, "version": {"version": "1.2.3"}},
    "capacity": {"memory": {"value": "1Gi"}},
}
OTHER: Document = {"attributes": {"model": {"string": "h100"}}}


def devices(*documents: Document) -> list[DeviceInput]:
    return [DeviceInput("gpu.example.com", view(Device, document)) for document in documents]


def findings(expression: str, *documents: Document, minor: int = 36) -> list[Finding]:
    return lint(expression, device_environment((1, minor), stored=False), devices(*documents))


def rules(expression: str, *documents: Document) -> dict[str, str]:
    return {finding.rule: finding.message for finding in findings(expression, *documents)}


def test_a_good_selector_has_no_findings() -> None:
    assert findings(f'has({D}.model) && {D}.model == "a100"', GPU, OTHER) == []
    assert findings(f'{D}.model == "a100"') == []


def test_each_issue_of_the_compiler_is_an_error_at_its_place() -> None:
    found = findings("device.lost &&\n  nothing")
    assert [(f.severity, f.line, f.column) for f in found] == [(Severity.ERROR, 1, 7), (Severity.ERROR, 2, 3)]
    assert found[0].message == "undefined field 'lost'"


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ('attributes.string["model"] == "a"', 'since 1.31 use device.attributes["DOMAIN"].NAME'),
        ('has(device.attributes["gpu.example.com"])', 'a domain is tested with "DOMAIN" in device.attributes'),
        ('device.capacity["a"].b > quantity("1Gi")', 'quantities compare as in a.isGreaterThan(quantity("1Gi"))'),
        ('device.capacity["a"].b >= quantity("1Gi")', 'write a.compareTo(quantity("1Gi")) >= 0'),
        ('device.capacity["a"].b == "1Gi"', 'compare with quantity("1Gi"), not with a text'),
        ('device.capacity["a"].b.sign() == 1', "sign is not a method: write sign(q)"),
        ("device.attribute == 1", "use device.attributes"),
    ],
)
def test_common_mistakes_and_old_spellings_come_with_a_correction(expression: str, hint: str) -> None:
    (finding, *_) = findings(expression)
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith(f"; {hint}")


def test_what_an_old_release_does_not_know_is_an_error_there() -> None:
    expression = 'semver("v1.2", true).major() == 1'
    assert findings(expression, minor=34) == []
    assert "found no matching overload for 'semver'" in findings(expression, minor=33)[0].message


def test_a_non_bool_result_and_a_failing_constant_are_errors() -> None:
    assert findings("1 + 1")[0].message == "must evaluate to bool or the unknown type, not int"
    assert "type conversion error" in findings("int('x') == 1")[0].message


def test_too_much_cost_is_an_error_and_much_cost_a_warning() -> None:
    assert "an API server rejects it" in rules(f"type({D}.index) == int", GPU)["cost"]
    (finding,) = [f for f in findings("lists.range(100000).all(x, x >= 0 && x != 7)") if f.rule == "cost"]
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith("% of the limit of 1,000,000")


def test_names_that_no_device_has_are_found_with_a_guess() -> None:
    (finding,) = [f for f in findings(f'{D}.modle == "a100"', GPU, OTHER) if f.rule == "unknown-name"]
    assert finding.message == 'attribute gpu.example.com/modle exists in 0 of 2 devices; did you mean "model"?'
    assert (finding.severity, finding.column) == (Severity.WARNING, 37)


def test_a_name_that_is_only_tested_for_is_a_note() -> None:
    (finding,) = [f for f in findings(f"has({D}.lost)", GPU) if f.rule == "unknown-name"]
    assert finding.severity is Severity.NOTE


def test_a_missing_guard_is_found_on_the_devices_that_lack_the_name() -> None:
    message = rules(f"{D}.index == 1", GPU, OTHER, OTHER)["run-time-error"]
    assert message.startswith("fails on 2 of 3 devices: no such key: index; test it first with has(….index)")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f'{D}.index == "1"', "attribute gpu.example.com/index is int: == with string is always false"),
        (f'"1" == {D}.index', "attribute gpu.example.com/index is int: == with string is always false"),
        (f'{D}.index != "1"', "attribute gpu.example.com/index is int: != with string is always true"),
        (f"{D}.model == 1", "attribute gpu.example.com/model is string: == with int is always false"),
        (
            f'{D}.version == "1.2.3"',
            'attribute gpu.example.com/version is kubernetes.Semver: == with string fails; write semver("1.2.3")',
        ),
    ],
)
def test_comparing_with_a_type_that_no_device_has_is_reported(expression: str, message: str) -> None:
    assert rules(expression, GPU)["type-mismatch"] == message


def test_numbers_of_all_types_can_be_compared() -> None:
    assert "type-mismatch" not in rules(f"{D}.index == 1.0 || {D}.index == 1u", GPU)


def test_selectors_that_always_or_never_match_are_reported() -> None:
    assert rules('device.driver == "gpu.example.com"', GPU, OTHER) == {"always-true": "matches all 2 devices"}
    assert rules('device.driver == "x"', GPU, OTHER) == {"always-false": "matches none of 2 devices"}


def test_the_rest_is_left_out_when_time_is_up() -> None:
    slow = "lists.range(300000).all(x, x >= 0)"
    found = lint(slow, device_environment(stored=False), devices(GPU, GPU), give_up=lambda: True)
    assert {f.rule: f.message for f in found}["time"] == "time ran out before 2 of 2 devices were evaluated"
