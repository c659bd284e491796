from dataclasses import replace
from xml.etree import ElementTree

from devlet.sanity.report import Report
from devlet.sanity.reports import junit


def test_a_ci_system_can_read_it(report: Report) -> None:
    suites = ElementTree.fromstring(junit.render(report))
    assert suites.attrib == {"tests": "4", "failures": "1", "errors": "0", "skipped": "1", "time": "2.000"}
    cases = suites.findall("testsuite/testcase")
    assert [[part.tag for part in case] for case in cases] == [["system-out"], ["failure"], ["system-out"], ["skipped"]]
    assert cases[1].attrib["name"] == "DP-X-2 It is <good>"


def test_a_run_that_was_interrupted_is_an_error(report: Report) -> None:
    suites = ElementTree.fromstring(junit.render(replace(report, interrupted="SIGTERM")))
    assert (suites.attrib["tests"], suites.attrib["errors"]) == ("5", "1")
    suite = suites.find("testsuite")
    assert suite is not None and suite.attrib["errors"] == "1"
    last = suite.findall("testcase")[-1]
    [error] = last
    assert (last.attrib["name"], error.tag) == ("interrupted", "error")
    assert error.attrib["message"] == "interrupted by SIGTERM: the remaining checks were not run"


def test_what_xml_cannot_hold_is_replaced(report: Report) -> None:
    page = ElementTree.fromstring(junit.render(replace(report, driver="./\udcff\ufffe")))
    driver = page.find("testsuite/properties/property")
    assert driver is not None and driver.attrib["value"] == "./��"
    failure = page.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.attrib["message"] == "a <b> & \\x1b[31mc"
    assert failure.text == (
        "a <b> & \\x1b[31mc\nsecond\nrule: be good\nsource: the law, https://law.example/?a&b\n"
        "to reproduce: look\nlog & tail"
    )
