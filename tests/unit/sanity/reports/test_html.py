from html.parser import HTMLParser

from devlet.sanity.report import Report
from devlet.sanity.reports import FORMATS, html


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []  # whatever else has an address

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                (self.links if tag == "a" else self.loads).append(value or "")


def test_the_page_needs_nothing_else(report: Report) -> None:
    page = Tags()
    page.feed(html.render(report))
    assert page.loads == [] and "script" not in page.seen
    assert page.seen.count("tr") == 5
    assert set(page.links) == {"https://law.example/?a&b"}


def test_what_a_driver_says_is_not_markup(report: Report) -> None:
    page = html.render(report)
    assert "a &lt;b&gt; &amp;" in page and "<b>" not in page and "&lt;y&gt;" in page


def test_each_form_has_a_name() -> None:
    assert sorted(FORMATS) == ["html", "json", "junit", "text"]
