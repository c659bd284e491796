import pytest

from devlet.alloc.device_cel import device_environment
from devlet.alloc.mentions import Mention, mentions
from devlet.cel.program import compile

D = 'device.attributes["gpu.example.com"]'


def found(expression: str) -> list[Mention]:
    return mentions(compile(expression, device_environment()).checked)


def names(expression: str) -> list[tuple[str, str, str, bool]]:
    return [(each.kind, each.domain, each.name, each.is_test) for each in found(expression)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'{D}.model == "a"', ("model", False)),
        (f'{D}["model"] == "a"', ("model", False)),
        (f"has({D}.model)", ("model", True)),
        (f"{D}.?model.hasValue()", ("model", True)),
        (f'{D}[?"model"].hasValue()', ("model", True)),
        (f'"model" in {D}', ("model", True)),
        ('"gpu.example.com" in device.attributes', ("", True)),
        (f"size({D}) > 0", ("", False)),
        (f'cel.bind(d, {D}, d.model == "a")', ("model", False)),
        ('cel.bind(d, device, d.attributes["gpu.example.com"].model == "a")', ("model", False)),
    ],
)
def test_a_name_is_found_however_it_is_written(expression: str, expected: tuple[str, bool]) -> None:
    name, is_test = expected
    assert ("attributes", "gpu.example.com", name, is_test) in names(expression)


def test_names_come_in_the_order_of_the_text_with_their_place() -> None:
    expression = f'{D}.a == 1 && device.capacity["x.example.com"].b.isInteger() && [1].all(i, {D}.c == i)'
    places = compile(expression, device_environment()).checked.parsed.source.spans
    texts = [(each.text, expression[slice(*places[each.node])]) for each in found(expression)]
    assert texts == [
        ("attribute gpu.example.com/a", f"{D}.a"),
        ("capacity x.example.com/b", 'device.capacity["x.example.com"].b'),
        ("attribute gpu.example.com/c", f"{D}.c"),
    ]


def test_a_variable_hides_the_device_and_what_was_bound_before() -> None:
    assert names('[{"attributes": {"x": {"y": 1}}}].all(device, device.attributes["x"].y == 1)') == []
    assert names(f'cel.bind(d, {D}, [{{"m": 1}}].all(d, d.m == 1))') == []
    assert names(f"cel.bind(d, {D}, cel.bind(d, d.model, d == 1))") == [
        ("attributes", "gpu.example.com", "model", False)
    ]


def test_names_that_are_computed_are_not_found() -> None:
    assert names("device.attributes[device.driver].model == 1") == []
    assert names('device.driver == "a"') == []


def test_deep_trees_are_supported() -> None:
    assert found(" + ".join(["1"] * 240) + " > 0") == []
    assert len(found(" && ".join([f"{D}.a"] * 500))) == 500
