"""Output by JSONPath: `-o jsonpath=TEMPLATE` and `-o custom-columns=TITLE:PATH,…`."""

from collections.abc import Iterator, Sequence

from devlet.cli.output import Found, Printer, as_list
from devlet.cli.session import JSON, Document
from devlet.cli.tables import Layout, printable
from devlet.errors import InvalidInput
from devlet.objects import json_path

NONE = "<none>"


def printer(kind: str, text: str, *, headers: bool) -> Printer:
    return Template(json_path.template(text)) if kind == "jsonpath" else CustomColumns(text, headers)


class Template:
    """Whoever writes a template writes its line ends too."""

    accept = JSON
    end = ""

    def __init__(self, template: json_path.Template) -> None:
        self._template = template

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        objects = [o for f in found for o in f.objects]
        yield self._template.render(objects[0] if single and len(objects) == 1 else as_list(objects))

    def one(self, found: Found) -> Iterator[str]:
        for o in found.objects:
            yield self._template.render(o)


class CustomColumns:
    accept = JSON
    end = "\n"

    def __init__(self, text: str, headers: bool) -> None:
        self._columns = [_custom_column(part) for part in _split(text)]
        self._headers = headers
        self._layout = Layout()

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        return self._lines([o for f in found for o in f.objects])

    def one(self, found: Found) -> Iterator[str]:
        return self._lines(found.objects)

    def _lines(self, objects: list[Document]) -> Iterator[str]:
        rows = [[title for title, _ in self._columns]] if self._headers else []
        self._headers = False
        return self._layout.lines(rows + [[_values(path, o) for _, path in self._columns] for o in objects])


def _values(path: json_path.Path, document: Document) -> str:
    return printable(",".join(json_path.text_of(value) for value in path.find(document)).replace("\n", " ")) or NONE


def _custom_column(text: str) -> tuple[str, json_path.Path]:
    title, colon, path = text.partition(":")
    if not colon or not title or not path:
        raise InvalidInput(f'custom column "{text}": expected TITLE:PATH, as in NAME:.metadata.name')
    return title, json_path.relaxed_path(path)


def _split(text: str) -> Iterator[str]:
    """At commas outside of brackets: those inside belong to a path."""
    depth, begun = 0, 0
    for index, character in enumerate(text):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and depth == 0:
            yield text[begun:index]
            begun = index + 1
    yield text[begun:]
