"""Fail if a module has no test file of its name, or a test waits too briefly: `python -m tools.check_tests [ROOT]`.

`src/devlet/alloc/search.py` is tested by `tests/unit/alloc/test_search.py`, and `tests/support/claim_node.py` by
`tests/unit/support/test_claim_node.py`. A module whose behaviour shows only from
further away is listed in `ELSEWHERE` with the file that tests it, and why.

A wait that fails only because the machine is busy proves nothing. Tests wait with `until` or `deadline` of
`devlet.testing.waiting`, and give a program that they start at least a minute.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

# What needs tests: its folder, and the folder that names of modules are relative to.
PACKAGES = ((Path("src/devlet"), Path("src/devlet")), (Path("tests/support"), Path("tests")))
UNIT = Path("tests/unit")

# module, from `src/devlet` or `tests`: (test file, from the tests; why it has no test file of its own)
_CONTRACT = ("contract/test_store_contract.py", "it is a test suite; this runs it")
ELSEWHERE: dict[str, tuple[str, str]] = {
    f"support/cluster_contract/{module}.py": _CONTRACT
    for module in (
        "concurrency",
        "contract",
        "conversions",
        "deletion",
        "garbage",
        "lists",
        "metadata",
        "options",
        "ownership",
        "patches",
        "pods",
        "reading",
        "selectors",
        "specimens",
        "status",
        "verbs",
        "watches",
    )
} | {
    f"node/claims/{module}.py": ("unit/node/claims/test_manager.py", "a part of the manager, tested through it")
    for module in ("preparing",)
}

GENERATED = ("_pb2.py", "_pb2_grpc.py")
WITHOUT_TESTS = ("__init__.py", "__main__.py")


def problems(root: Path, elsewhere: dict[str, tuple[str, str]]) -> list[str]:
    """Return a line for each module without tests, and for each outdated entry of the table."""
    found = []
    names = set()
    for path, module in _modules(root):
        names.add(module.as_posix())
        own = UNIT / module.parent / f"test_{module.name}"
        listed = elsewhere.get(module.as_posix())
        if listed and (root / own).is_file():
            found.append(f"{path}: has {own}: remove it from ELSEWHERE")
        elif listed and not (root / "tests" / listed[0]).is_file():
            found.append(f"{path}: ELSEWHERE names tests/{listed[0]}, which does not exist")
        elif not listed and not (root / own).is_file():
            found.append(f"{path}: no {own}")
    gone = sorted(set(elsewhere) - names)
    return found + [f"{name}: is in ELSEWHERE but is not a module that needs tests" for name in gone]


def _modules(root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each module that needs tests: its path, and its name in `ELSEWHERE`."""
    for package, base in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if _needs_tests(path):
                yield path.relative_to(root), path.relative_to(root / base)


MINUTE = 60
LONGEST = 300  # seconds that pytest gives a test, from pyproject.toml
_PROGRAMS = ("run", "check_call", "check_output", "communicate", "create_connection", "urlopen", "HTTPConnection")
_WAITS = ("wait", "join", "result", "settimeout")


def short_waits(root: Path) -> list[str]:
    """Return a line for each place in the tests that waits too briefly for a busy machine."""
    found = []
    for path in sorted((root / "tests").rglob("*.py")):
        if path.is_relative_to(root / "tests/support"):
            continue  # the caller determines these waits
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        lines = sorted({(call.lineno, advice) for call in calls if (advice := _advice(call))})
        found += [f"{path.relative_to(root)}:{number}: {advice}" for number, advice in lines]
    return found


def _advice(call: ast.Call) -> str | None:
    name = ast.unparse(call.func)
    last = name.rpartition(".")[2]
    first = _seconds(call.args[0]) if call.args else None
    named = next((_seconds(word.value) for word in call.keywords if word.arg == "timeout"), None)
    if last == "fail_after":
        return "use `deadline` of devlet.testing.waiting, which says what was awaited"
    if name.endswith("mark.timeout") and first is not None and first < LONGEST:
        return f"remove the mark (the default is {LONGEST} s) or use a longer timeout"
    if last in _PROGRAMS and _is_short(named):
        return "give the program at least 60 s"
    if last in _WAITS and (_is_short(first) or _is_short(named)):
        return "wait for at least 60 s"
    return None


def _is_short(seconds: float | None) -> bool:
    """Return whether the wait is too short. Less than a second is allowed: such a test expects that nothing arrives."""
    return seconds is not None and 1 <= seconds < MINUTE


def _seconds(node: ast.expr) -> float | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else None


def _needs_tests(path: Path) -> bool:
    return path.name not in WITHOUT_TESTS and not path.name.endswith(GENERATED)


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd()
    found = problems(root, ELSEWHERE) + short_waits(root)
    print("\n".join(found) or "every module has its tests, and no test waits too briefly")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
