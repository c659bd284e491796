import pytest

from devlet.cel.environment import kubernetes
from devlet.cel.parser import parse
from devlet.cel.scopes import Scopes
from devlet.cel.types import BOOL, INT, STRING

ENVIRONMENT = kubernetes((1, 36), stored=True).extended(variables={"x": INT, "a.b": STRING})


def type_of(scopes: Scopes, name: str) -> object:
    found = scopes.find(name)
    return found and found.type


def test_a_variable_hides_the_same_name_further_out_until_its_scope_ends() -> None:
    scopes = Scopes(ENVIRONMENT)
    scopes.enter({"x": BOOL})
    scopes.enter({"x": STRING, "y": BOOL})
    assert (type_of(scopes, "x"), type_of(scopes, "y")) == (STRING, BOOL)
    scopes.leave()
    assert (type_of(scopes, "x"), type_of(scopes, "y")) == (BOOL, None)
    scopes.leave()
    assert type_of(scopes, "x") == INT


def test_a_leading_dot_is_ignored() -> None:
    scopes = Scopes(ENVIRONMENT)
    assert scopes.find(".x") == scopes.find("x")
    assert scopes.function(".size") is scopes.function("size") is not None
    assert scopes.function("nosuch") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [("x", "x"), ("a.b", "a.b"), (".a.b", ".a.b"), ("f().b", None), ("has(a.b)", None), ("x" + ".y" * 100, None)],
)
def test_only_selections_from_an_identifier_can_be_a_dotted_name(text: str, name: str | None) -> None:
    assert Scopes(ENVIRONMENT).qualified(parse(text, ENVIRONMENT.macros).root) == name
