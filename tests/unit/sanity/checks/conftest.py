"""What is said of the bugs that are planted."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from devlet.sanity.check import Failed, Warned
from devlet.sanity.report import Report

FINDINGS: dict[str, str] = yaml.safe_load((Path(__file__).parent / "findings.yaml").read_text())
_ITS_END = re.compile("exited with|was ended by|is not registered any more|did not come up|does not any more")

IsFound = Callable[[Report], None]


@pytest.fixture
def is_found() -> IsFound:
    """Whether the one check that was run says of the bug what is to be said, and not something else."""

    def check(report: Report) -> None:
        [result] = report.results
        assert isinstance(result.outcome, Failed | Warned), f"{result.text}; {report.trouble}"
        wanted = FINDINGS[result.check.id]
        assert re.search(wanted, result.text, re.DOTALL), result.text
        assert _ITS_END.search(wanted) or not _ITS_END.search(result.text), result.text
        assert result.how

    return check
