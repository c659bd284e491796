from pathlib import Path

import pytest
from tools.check_tests import ELSEWHERE, problems, short_waits


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("src/devlet/__init__.py", "src/devlet/alloc/search.py", "src/devlet/wire/dra_v1/api_pb2.py"):
        write(tmp_path / name)
    return tmp_path


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_a_module_without_a_test_file_of_its_name_is_reported(root: Path) -> None:
    write(root / "tests/unit/alloc/test_searching.py")
    assert problems(root, {}) == ["src/devlet/alloc/search.py: no tests/unit/alloc/test_search.py"]


def test_what_the_tests_share_needs_tests(root: Path) -> None:
    write(root / "tests/unit/alloc/test_search.py")
    write(root / "tests/support/peers/drivers.py")
    missing = "tests/support/peers/drivers.py: no tests/unit/support/peers/test_drivers.py"
    assert problems(root, {}) == [missing]


def test_package_init_files_and_generated_code_need_no_tests(root: Path) -> None:
    write(root / "tests/unit/alloc/test_search.py")
    assert problems(root, {}) == []


def test_a_module_may_be_tested_elsewhere_if_the_table_says_so(root: Path) -> None:
    write(root / "tests/flows/test_up.py")
    assert problems(root, {"alloc/search.py": ("flows/test_up.py", "a reason")}) == []


def test_an_outdated_entry_of_the_table_is_reported(root: Path) -> None:
    stale = {"alloc/search.py": ("flows/test_up.py", "a reason"), "alloc/gone.py": ("flows/test_up.py", "a reason")}
    assert problems(root, stale) == [
        "src/devlet/alloc/search.py: ELSEWHERE names tests/flows/test_up.py, which does not exist",
        "alloc/gone.py: is in ELSEWHERE but is not a module that needs tests",
    ]
    write(root / "tests/unit/alloc/test_search.py")
    assert "remove it" in problems(root, {"alloc/search.py": ("flows/test_up.py", "a reason")})[0]


def test_every_entry_of_the_table_says_why() -> None:
    assert [module for module, (_, reason) in ELSEWHERE.items() if not reason.strip()] == []


WAITS = {
    "with anyio.fail_after(10): pass": "use `deadline` of devlet.testing.waiting, which says what was awaited",
    "done = subprocess.run(words, timeout=50)": "give the program at least 60 s",
    "done = subprocess.run(\n  words,\n  timeout=50,\n)": "give the program at least 60 s",
    "out, err = process.communicate(timeout=5)": "give the program at least 60 s",
    "arrived = event.wait(5)": "wait for at least 60 s",
    "thread.join(timeout=30.0)": "wait for at least 60 s",
    "connection.settimeout(5)": "wait for at least 60 s",
    "pytestmark = pytest.mark.timeout(120)": "remove the mark (the default is 300 s) or use a longer timeout",
}


@pytest.mark.parametrize(("lines", "advice"), WAITS.items())
def test_a_wait_that_is_too_short_is_reported_with_its_place(root: Path, lines: str, advice: str) -> None:
    (root / "tests/unit").mkdir(parents=True)
    (root / "tests/unit/test_it.py").write_text(f"import x\n{lines}\n")
    assert short_waits(root) == [f"tests/unit/test_it.py:2: {advice}"]


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(words, timeout=120)",
        "pytestmark = pytest.mark.timeout(600)",
        "with deadline(): pass",
        "assert not event.wait(0.1)",  # nothing is meant to come
        "thread.join()",
        '", ".join(words)',
    ],
)
def test_other_waits_are_left_alone(root: Path, line: str) -> None:
    (root / "tests").mkdir(parents=True)
    (root / "tests/test_it.py").write_text(f"{line}\n")
    assert short_waits(root) == []
