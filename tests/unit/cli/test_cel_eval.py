import pytest

from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.published import Published
from devlet.cli.cel_eval import TIME_UP, Evaluated, Evaluator, deadline, document
from devlet.cli.cel_input import Specimen
from devlet.cli.cel_release import releases
from devlet.objects.documents import view
from devlet.objects.types.slice import Device

D = 'device.attributes["gpu.example.com"]'
(RELEASE,) = releases("", "", stored=False)
(OLD,) = releases("1.35", "", stored=False)


def specimen(name: str, **attributes: object) -> Specimen:
    device = view(Device, {"name": name, "attributes": attributes})
    return Specimen("gpu.example.com", "n1", name, "n1", DeviceInput("gpu.example.com", device))


SPECIMENS = [specimen("gpu-0", model={"string": "a"}), specimen("gpu-1", tags={"strings": ["x"]})]


def evaluated(expression: str, *, seconds: float = 5, trace: bool = False) -> Evaluated:
    published = Published(s.input for s in SPECIMENS)
    return Evaluator(SPECIMENS, published, seconds=seconds, trace=trace).evaluate(expression, RELEASE)


def test_each_device_has_a_result_and_a_cost() -> None:
    found = evaluated(f'{D}.model == "a"')
    assert [(outcome.text, outcome.error, outcome.cost) for outcome in found.outcomes] == [
        ("true", "", 5),
        ("error", "no such key: model", 5),
    ]
    assert found.counts == {"true": 1, "error": 1}
    assert (found.estimate, found.exceeds) == (5, False)
    assert [sentence for _, sentence in found.names] == ["attribute gpu.example.com/model exists in 1 of 2 devices"]


def test_an_error_is_shown_with_its_place() -> None:
    found = evaluated(f'{D}.model == "a"')
    assert found.caret(found.outcomes[1]).splitlines()[0] == "ERROR: <input>:1:37: no such key: model"


def test_what_does_not_compile_has_no_outcomes() -> None:
    found = evaluated("attributes.x")
    assert found.program is None
    assert found.compile_error.startswith(
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'attributes'"
    )
    assert document(found, tree=False).keys() >= {"compileError", "hint", "kubeVersion"}


def test_a_device_that_the_release_cannot_read_is_an_error() -> None:
    found = Evaluator(SPECIMENS, Published([])).evaluate("true", OLD)
    assert [outcome.error for outcome in found.outcomes] == ["", "attribute tags: unsupported attribute value"]
    assert found.names == []


def test_a_result_that_is_not_a_bool_is_an_error() -> None:
    assert "could not be converted to bool" in evaluated(f"{D}.model").outcomes[0].error


def test_devices_that_are_left_when_time_is_up_are_not_evaluated() -> None:
    found = evaluated("lists.range(150000).all(x, x >= 0)", seconds=0.001)
    assert [outcome.error for outcome in found.outcomes] == ["operation interrupted", TIME_UP]


def test_a_document_has_all_of_it() -> None:
    found = document(evaluated(f'{D}.model == "a"', trace=True), tree=True)
    assert found["counts"] == {"true": 1, "false": 0, "error": 1}
    assert (found["estimatedCost"], found["costLimit"], found["exceedsEstimateLimit"]) == (5, 1_000_000, False)
    first, second = found["devices"]
    assert first["result"] is True and "error" not in first
    assert [part["expression"] for part in first["tree"]] == [f'{D}.model == "a"', f"{D}.model"]
    assert (second["result"], second["error"]) == ("runtime-error", "no such key: model")


@pytest.mark.parametrize(("seconds", "is_up"), [(0, False), (100, False), (-1, True)])
def test_no_seconds_are_no_limit(seconds: float, is_up: bool) -> None:
    assert deadline(seconds)() is is_up
