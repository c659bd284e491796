from devlet.cel.environment import kubernetes
from devlet.cel.overloads import no_overload, resolve
from devlet.cel.substitution import Substitution
from devlet.cel.types import BOOL, DOUBLE, DYN, INT, STRING, Type, list_of

FUNCTIONS = kubernetes((1, 36), stored=True).functions


def resolved(name: str, *types: Type, mixed_numbers: bool = True) -> tuple[Type | None, tuple[str, ...]]:
    return resolve(FUNCTIONS[name], types, Substitution(), is_member=False, mixed_numbers=mixed_numbers)


def test_the_overload_that_fits_determines_the_result() -> None:
    assert resolved("_+_", INT, INT) == (INT, ("add_int64",))
    assert resolved("_+_", INT, STRING) == (None, ())


def test_the_result_is_dyn_if_overloads_with_different_results_fit() -> None:
    result, overloads = resolved("-_", DYN)
    assert result == DYN
    assert overloads == ("negate_double", "negate_int64")


def test_type_variables_are_bound_by_the_arguments() -> None:
    assert resolved("_[_]", list_of(STRING), INT) == (STRING, ("index_list",))


def test_without_mixed_numbers_only_numbers_of_the_same_type_can_be_ordered() -> None:
    assert resolved("_<_", INT, DOUBLE) == (BOOL, ("less_int64_double",))
    assert resolved("_<_", INT, DOUBLE, mixed_numbers=False) == (None, ())
    assert resolved("_<_", INT, INT, mixed_numbers=False) == (BOOL, ("less_int64",))


def test_members_and_global_functions_are_distinguished() -> None:
    size = FUNCTIONS["size"]
    members = resolve(size, [STRING], Substitution(), is_member=True, mixed_numbers=True)
    assert members == (INT, ("string_size",))
    assert resolved("size", STRING) == (INT, ("size_string",))


def test_the_message_shows_the_target_and_the_arguments() -> None:
    size, unknown = FUNCTIONS["size"], Substitution()
    message = no_overload(size, [INT, list_of(STRING)], unknown, is_member=True)
    assert message == "found no matching overload for 'size' applied to 'int.(list(string))'"
    message = no_overload(size, [INT, unknown.variable()], unknown, is_member=False)
    assert message == "found no matching overload for 'size' applied to '(int, dyn)'"
