from devlet.node.reports import Report


def test_a_report_has_what_an_event_needs() -> None:
    assert Report("Warning", "Reason", "text").message == "text"
