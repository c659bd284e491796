import pytest

from devlet.cel.generate.code import Block, Code, Line, Operand
from devlet.cel.types import INT, STRING


def test_values_are_named_and_never_written() -> None:
    code = Code()
    operand = code.constant('") or __import__("os', STRING)
    assert operand.text == "k1" and code.namespace == {"k1": '") or __import__("os'}


def test_the_same_value_has_one_name() -> None:
    code = Code()
    assert code.known("a") == code.known("a") != code.known("b")
    assert code.known(1) != code.known(True)


def test_numbers_of_different_classes_are_different_values() -> None:
    code = Code()
    assert len({code.known(value) for value in (1, True, 1.0)}) == 3


def test_blocks_are_indented_and_lines_keep_whose_keys_they_look_up() -> None:
    code = Code()
    with code.function("f1", ["a0"]):
        code.write("t1 = a0[k1]", {"model": 7})
        code.nest("if t1:", "return t1")
    source = code.finish()
    assert source.text == "def f1(a0):\n t1 = a0[k1]\n if t1:\n  return t1"
    assert source.keys == {2: {"model": 7}}


def test_lines_written_apart_are_not_in_the_body() -> None:
    code = Code()
    with code.apart() as lines:
        code.write("pass")
        assert code.depth == 1
    assert lines == [Line("pass")] and not code.body and code.depth == 0


def test_what_may_fail_is_stored_once_and_counted() -> None:
    code = Code()
    stored = code.settled(Operand("a0[k1]", INT, keys={"x": 3}))
    assert stored.simple and not stored.keys and code.failures == 1
    assert code.settled(stored) is stored and code.stored(stored) is stored


def test_an_empty_block_is_still_python() -> None:
    code = Code()
    code.put("if t1:", [])
    assert code.body == [Block("if t1:", [Line("pass")])]


def test_long_expressions_are_cut() -> None:
    code = Code()
    operand = Operand("a0", STRING, simple=True)
    for _ in range(1000):
        operand = code.combined(f"({operand.text} + a0)", STRING, operand)
    assert max(len(line.text) for line in code.body if isinstance(line, Line)) < 250


def test_keys_do_not_count_where_a_later_error_may_replace_an_earlier_one() -> None:
    code = Code()
    code.inexact += 1
    assert not code.line("t1 = a0[k1]", {"x": 1}).keys


@pytest.mark.parametrize("prefix", ["t", "v", "e"])
def test_fresh_names_are_new(prefix: str) -> None:
    code = Code()
    assert code.fresh(prefix) != code.fresh(prefix)
