"""The `__all__` of a public package lists what the package has."""

import ast
from importlib import import_module, util
from itertools import chain
from pathlib import Path

import pytest

PUBLIC = ["devlet.alloc", "devlet.cluster.client", "devlet.objects", "devlet.sdk", "devlet.testing"]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_package_lists_its_names(name: str) -> None:
    listed = getattr(import_module(name), "__all__", [])
    assert sorted(listed) == sorted(held(name))


@pytest.mark.parametrize("name", PUBLIC)
def test_the_names_of_a_public_package_are_listed_once(name: str) -> None:
    listed = list(getattr(import_module(name), "__all__", []))
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_listed_name_can_be_imported(name: str) -> None:
    package = import_module(name)
    assert [each for each in getattr(package, "__all__", []) if not hasattr(package, each)] == []


def test_lazily_imported_names_count() -> None:
    source = "if TYPE_CHECKING:\n  from devlet.testing import builders\n  from devlet.testing.node import Node"
    assert names(source, "devlet.testing") == {"builders", "Node"}


def test_private_names_and_foreign_imports_do_not_count() -> None:
    source = "from os import path\nfrom devlet.sdk.slices import Slices\n_own = 1\nOPEN = 2\ndef f() -> None: ..."
    assert names(source, "devlet.sdk") == {"Slices", "OPEN", "f"}


def held(package: str) -> set[str]:
    spec = util.find_spec(package)
    assert spec is not None and spec.origin is not None
    return names(Path(spec.origin).read_text(), package)


def names(source: str, package: str) -> set[str]:
    """Return the names defined at the top level, and those that a package imports from its own modules."""
    found: set[str] = set()
    body = list(ast.parse(source).body)
    lazy = [node.body for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for node in chain(body, *lazy):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.ImportFrom(module=str(module), names=aliases) if f"{module}.".startswith(f"{package}."):
                found |= {alias.asname or alias.name for alias in aliases}
    return {name for name in found if not name.startswith("_")}
