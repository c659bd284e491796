"""The findings that planted bugs must cause."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from devlet.sanity.check import Failed, Warned
from devlet.sanity.report import Report

FINDINGS: dict[str, str] = yaml.safe_load((Path(__file__).parent / "findings.yaml").read_text())
_ITS_END = re.compile(r"exited with \d|was ended by|is no longer registered|did not come up|no longer does")

IsFound = Callable[[Report], None]


@pytest.fixture
def is_found() -> IsFound:
    """Assert that the one check that was run reports the expected finding, and nothing else."""

    def check(report: Report) -> None:
        [result] = report.results
        assert isinstance(result.outcome, Failed | Warned), f"{result.text}; {report.trouble}"
        wanted = FINDINGS[result.check.id]
        assert re.search(wanted, result.text, re.DOTALL), result.text
        assert _ITS_END.search(wanted) or not _ITS_END.search(result.text), result.text
        assert result.how

    return check
