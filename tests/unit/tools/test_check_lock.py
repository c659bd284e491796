from pathlib import Path

import pytest
from tools.check_lock import problems

ROOT = Path(__file__).parents[3]
HASH = f"--hash=sha256:{'0' * 64}"
# iniconfig and pluggy are installed wherever pytest is, and need nothing themselves.
PYPROJECT = """\
[project]
dependencies = ["iniconfig>=2"]
[dependency-groups]
build = []
dev = [{ include-group = "build" }, "pluggy>=1"]
"""
RUN = f"iniconfig==2.3.1 \\\n    {HASH}\n"
DEV = f"{RUN}pluggy==1.7.0 \\\n    {HASH}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "requirements.lock").write_text(RUN)
    (tmp_path / "requirements-dev.lock").write_text(DEV)
    return tmp_path


def test_locks_that_fit_have_no_problems(root: Path) -> None:
    assert problems(root) == []


def test_the_locks_of_this_project_name_no_index(root: Path) -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert not any(line.startswith("-") for line in text.splitlines())


@pytest.mark.parametrize(
    ("lock", "problem"),
    [
        ("", "pyproject.toml needs iniconfig>=2, which is not in the lock file"),
        (RUN.replace("2.3.1", "1.0"), "pyproject.toml needs iniconfig>=2, but the lock file has 1.0"),
        ("iniconfig==2.3.1\n", "iniconfig has no hash"),
        (RUN.replace("==", ">="), "iniconfig is not pinned to one version"),
        (f"{RUN}pluggy==1.7.0 \\\n    {HASH}\n", "nothing needs pluggy"),
        (f"--index-url https://packages.example.com/simple\n{RUN}", "does not belong in a lock file"),
        (RUN.replace("2.3.1", "2.2"), "iniconfig 2.2, but 2.3.1 in requirements-dev.lock"),
    ],
)
def test_a_lock_that_does_not_fit_is_reported(root: Path, lock: str, problem: str) -> None:
    (root / "requirements.lock").write_text(lock)
    assert any(problem in found for found in problems(root))


def test_transitive_dependencies_must_be_in_the_lock(root: Path) -> None:
    (root / "pyproject.toml").write_text(PYPROJECT.replace("pluggy>=1", "pytest>=8"))
    (root / "requirements-dev.lock").write_text(DEV.replace("pluggy==1.7.0", "pytest==9.2.0"))
    assert any("pytest needs pluggy" in found for found in problems(root))


def test_a_package_for_another_platform_is_not_missed_here(root: Path) -> None:
    entry = f"colorama==0.4.6 ; sys_platform == 'never' \\\n    {HASH}\n"
    (root / "requirements-dev.lock").write_text(entry + DEV)
    assert problems(root) == []
