from typing import Any

from devlet.cel.generate.code import Code, Operand
from devlet.cel.generate.context import Context, joined
from devlet.cel.types import BOOL, DYN, INT, STRING, list_of, optional_of


def context(bench: Any) -> Context:
    checked, plan = bench.compiled("device.driver == 'x'")
    return Context(checked, plan.constants, Code())


def test_types_that_differ_inside_keep_their_outside() -> None:
    assert joined((optional_of(INT), optional_of(STRING))) == optional_of(DYN)
    assert joined((list_of(INT), list_of(INT))) == list_of(INT)
    assert joined((INT, STRING)) == DYN == joined(())


def test_variables_hide_others_for_a_while_whatever_they_are_called(bench: Any) -> None:
    here = context(bench)
    here.scope = {"self": Operand("a0", INT)}
    with here.variables({"self": Operand("v1", INT), "added": Operand("v2", INT)}):
        assert here.scope["self"].text == "v1"
    assert {name: operand.text for name, operand in here.scope.items()} == {"self": "a0"}


def test_only_what_is_known_only_at_run_time_is_asked_whether_it_is_a_bool(bench: Any) -> None:
    here = context(bench)
    sure = Operand("a0", BOOL)
    assert here.condition(sure) is sure
    assert not here.code.body
    assert here.condition(Operand("a0", DYN)).type == BOOL
    assert here.code.failures == 1


def test_an_optional_gets_its_box_when_it_is_needed_as_a_value(bench: Any) -> None:
    here = context(bench)
    bare = Operand("t1", optional_of(INT), simple=True, bare=True)
    boxed = here.value(bare)
    assert not boxed.bare and here.bare(bare) is bare
