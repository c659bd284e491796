from devlet.alloc.cases import answer_case, read_case
from tests.support.expression_grammar import DEVICE_DOCUMENT
from tests.support.expressions import Expressions


def results(seed: int, number: int, **options: float) -> list[object]:
    features = {"consumableCapacity": True, "listTypeAttributes": True}
    cases = [
        {"id": "c", "expression": text, "device": DEVICE_DOCUMENT, "features": features}
        for text in Expressions(seed, **options).some(number)  # type: ignore[arg-type]
    ]
    return [answer_case(read_case(case))["result"] for case in cases]


def test_the_same_seed_gives_the_same_expressions() -> None:
    assert list(Expressions(7).some(50)) == list(Expressions(7).some(50))
    assert list(Expressions(7).some(50)) != list(Expressions(8).some(50))


def test_without_mistakes_nearly_all_compile() -> None:
    found = results(3, 300, wrong=0, broken=0)
    # what is left are constants that cannot be computed, and those that are no conditions
    assert found.count("compile-error") < 80
    assert {True, False, "runtime-error"} <= set(found)


def test_mistakes_are_made_where_they_are_asked_for() -> None:
    assert results(3, 100, wrong=0, broken=1.0).count("compile-error") > 70
    assert results(3, 100, wrong=0.5, broken=0).count("compile-error") > 70


def test_standard_expressions_know_no_device() -> None:
    assert not any("device" in text or "quantity" in text for text in Expressions(1, standard=True).some(300))
