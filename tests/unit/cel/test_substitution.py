"""Type variables: what they are bound to, and when a type fits another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.substitution import (
    MAX_DEPTH,
    Substitution,
    TypeTooComplex,
    instantiate,
    most_general,
    parameters,
)
from devlet.cel.types import (
    ANY,
    BOOL,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    QUANTITY,
    STRING,
    UINT,
    A,
    B,
    Kind,
    Type,
    list_of,
    map_of,
    object_type,
    optional_of,
    type_of,
)

_SIMPLE = st.sampled_from([ANY, BOOL, DURATION, DYN, INT, NULL, QUANTITY, STRING, UINT])
types = st.recursive(
    _SIMPLE,
    lambda inner: st.one_of(
        inner.map(list_of), inner.map(optional_of), inner.map(type_of), st.builds(map_of, inner, inner)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (INT, INT),
        (INT, DYN),
        (ANY, STRING),
        (ERROR, list_of(INT)),
        (NULL, QUANTITY),
        (DURATION, NULL),
        (NULL, optional_of(INT)),
        (NULL, Type(Kind.INT, nullable=True)),
        (list_of(INT), list_of(DYN)),
        (map_of(STRING, ANY), map_of(STRING, list_of(INT))),
        (type_of(INT), type_of(STRING)),
        (object_type("x"), object_type("x")),
    ],
)
def test_types_that_fit(a: Type, b: Type) -> None:
    assert Substitution().assignable(a, b)
    assert Substitution().assignable(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (INT, UINT),
        (INT, NULL),
        (STRING, NULL),
        (list_of(INT), NULL),
        (list_of(INT), list_of(STRING)),
        (list_of(INT), INT),
        (optional_of(INT), INT),
        (map_of(STRING, INT), map_of(INT, INT)),
        (object_type("x"), object_type("y")),
        (type_of(INT), INT),
    ],
)
def test_types_that_do_not_fit(a: Type, b: Type) -> None:
    assert not Substitution().assignable(a, b)
    assert not Substitution().assignable(b, a)


def test_a_variable_is_bound_by_the_first_type_it_meets() -> None:
    s = Substitution()
    v = s.variable()
    assert s.assignable(list_of(v), list_of(INT))
    assert s.apply(map_of(v, v)) == map_of(INT, INT)
    assert not s.assignable(v, STRING)
    assert s.apply(v) == INT


def test_a_bound_variable_becomes_more_general() -> None:
    s = Substitution()
    v = s.variable()
    assert s.assignable(v, INT)
    assert s.assignable(v, DYN)
    assert s.apply(v) == DYN


def test_a_failed_comparison_binds_nothing() -> None:
    s = Substitution()
    v, w = s.variable(), s.variable()
    assert s.assignable(v, INT)
    assert not s.all_assignable((w, v, INT), (STRING, DYN, BOOL))
    assert s.apply(v) == INT
    assert s.apply(w) == w


def test_lists_of_different_length_do_not_fit() -> None:
    assert not Substitution().all_assignable((INT,), (INT, INT))


def test_a_variable_never_contains_itself() -> None:
    s = Substitution()
    v, w = s.variable(), s.variable()
    assert not s.assignable(v, list_of(v))
    assert s.assignable(v, w)
    assert not s.assignable(w, list_of(v))
    assert s.assignable(v, v)


def test_free_variables_stay_or_become_dyn() -> None:
    s = Substitution()
    v = s.variable()
    assert s.apply(list_of(v)) == list_of(v)
    assert s.apply(list_of(v), free_is_dyn=True) == list_of(DYN)
    assert s.apply(type_of(list_of(A)), free_is_dyn=True) == type_of(list_of(DYN))


def test_variables_are_numbered() -> None:
    s = Substitution()
    assert [s.variable().name, s.variable().name] == ["_var0", "_var1"]


def test_a_signature_gets_variables_of_its_own() -> None:
    assert parameters((list_of(B), map_of(A, B))) == ("B", "A")
    assert instantiate(map_of(A, list_of(INT)), {"A": STRING}) == map_of(STRING, list_of(INT))


def test_types_that_double_with_every_step_are_given_up() -> None:
    s = Substitution()
    last = INT
    with pytest.raises(TypeTooComplex):
        for _ in range(60):
            v = s.variable()
            s.assignable(v, map_of(last, last))
            last = v


def test_types_that_are_too_deep_are_given_up() -> None:
    deep = INT
    for _ in range(MAX_DEPTH + 1):
        deep = list_of(deep)
    with pytest.raises(TypeTooComplex):
        Substitution().apply(deep)
    with pytest.raises(TypeTooComplex):
        Substitution().assignable(deep, deep)


@given(types)
def test_every_type_fits_itself_dyn_and_a_variable(t: Type) -> None:
    s = Substitution()
    v = s.variable()
    assert s.assignable(t, t)
    assert s.assignable(t, DYN)
    assert s.assignable(v, t)
    assert s.apply(v) == t


@given(types, types)
def test_whether_types_fit_does_not_depend_on_their_order(a: Type, b: Type) -> None:
    assert Substitution().assignable(a, b) == Substitution().assignable(b, a)


@given(types, types)
def test_the_more_general_of_two_types_is_one_of_them(a: Type, b: Type) -> None:
    assert most_general(a, b) in (a, b)
    assert most_general(a, DYN) in (a, DYN)
    assert most_general(a, a) == a
