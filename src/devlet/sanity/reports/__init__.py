"""The formats of a report: for people, for CI systems, for programs, and as a page."""

from collections.abc import Callable, Mapping

from devlet.sanity.report import Report
from devlet.sanity.reports import html, json, junit, text

__all__ = ["FORMATS"]

FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": text.render,
    "json": json.render,
    "junit": junit.render,
    "html": html.render,
}
