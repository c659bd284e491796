from dataclasses import replace

from devlet.sanity.report import Report
from devlet.sanity.reports import text


def test_findings_are_shown_with_their_rule_and_how_to_reproduce_them(report: Report) -> None:
    page = text.render(report)
    assert page.startswith("The driver could not be tested: it ended\n\nDP-X-2 failed: It is <good>\n  seen: a <b> & ")
    rule = "  rule: be good\n  source: the law, https://law.example/?a&b\n"
    assert f"\n    second\n{rule}  to reproduce: look\n  log: log & tail\n" in page
    assert "DP-X-3 warned" in page and "DP-X-1" not in page
    assert page.endswith("1 passed, 1 failed, 1 warned, 1 skipped in 2.0 s\n")


def test_a_line_has_the_first_line_of_the_reason(report: Report) -> None:
    assert text.line(report.results[3]) == "skipped DP-X-4       It is <good>: no devices"


def test_a_long_id_does_not_touch_the_title(report: Report) -> None:
    result = report.results[0]
    long = replace(result, check=replace(result.check, id="DRA-UNPREP-10"))
    assert "DRA-UNPREP-10 It is" in text.line(long)
