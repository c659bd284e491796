"""A report as JUnit XML, which CI systems read. A warning is a test that passed with output."""

import re
from xml.etree import ElementTree

from devlet.sanity.check import Failed, Skipped
from devlet.sanity.report import Report, Result

__all__ = ["render"]

# Characters that XML 1.0 cannot represent, not even escaped; logs contain them for colours.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    errors = 1 if report.interrupted else 0
    counts = {
        "tests": len(report.results) + errors,
        "failures": report.counts["failed"],
        "errors": errors,
        "skipped": report.counts["skipped"],
    }
    numbers = {name: str(number) for name, number in counts.items()} | {"time": f"{report.took:.3f}"}
    name = f"devlet sanity {report.kind}"
    suites = ElementTree.Element("testsuites", numbers)
    about = {"name": name, "timestamp": report.began.removesuffix("Z")} | numbers
    suite = ElementTree.SubElement(suites, "testsuite", about)
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in (("driver", report.driver), ("seed", str(report.seed))):
        ElementTree.SubElement(properties, "property", name=key, value=_plain(value))
    for result in report.results:
        _case(suite, name, result)
    if report.interrupted:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name="interrupted", time="0.000")
        message = f"interrupted by {report.interrupted}: the remaining checks were not run"
        ElementTree.SubElement(case, "error", message=message)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, name: str, result: Result) -> None:
    title = f"{result.check.id} {result.check.title}"
    case = ElementTree.SubElement(suite, "testcase", classname=name, name=title, time=f"{result.took:.3f}")
    text = _plain(result.text)
    match result.outcome:
        case Failed():
            failure = ElementTree.SubElement(case, "failure", message=text.partition("\n")[0])
            rule = f"rule: {result.check.rule}\nsource: {result.check.source}"
            failure.text = _plain(f"{text}\n{rule}\nto reproduce: {result.how}\n{result.log}").strip()
        case Skipped():
            ElementTree.SubElement(case, "skipped", message=text.partition("\n")[0])
        case _ if text:
            ElementTree.SubElement(case, "system-out").text = text


def _plain(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
