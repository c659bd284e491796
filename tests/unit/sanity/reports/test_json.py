import json

from devlet.sanity.report import Report
from devlet.sanity.reports import json as form


def test_everything_is_there(report: Report) -> None:
    document = json.loads(form.render(report))
    assert document["kind"] == "SanityReport" and document["seed"] == 7 and document["trouble"] == "it ended"
    assert document["counts"] == {"failed": 1, "passed": 1, "skipped": 1, "warned": 1}
    assert document["results"][1] == {
        "id": "DP-X-2",
        "title": "It is <good>",
        "rule": "be good",
        "source": {"name": "the law", "url": "https://law.example/?a&b"},
        "outcome": "failed",
        "text": "a <b> & \\x1b[31mc\nsecond",
        "reproduce": "look",
        "seconds": 0.5,
        "log": "log & tail",
    }
