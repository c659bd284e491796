"""Output by JSONPath: `-o jsonpath=TEMPLATE`, `-o custom-columns=TITLE:PATH,…` and `--sort-by=PATH`."""

from collections.abc import Callable, Iterator, Sequence

from devlet.cli.output import Found, Printer, as_list
from devlet.cli.session import JSON, Document
from devlet.cli.tables import Layout, printable, rows_of
from devlet.errors import InvalidInput
from devlet.objects import json_path

NONE = "<none>"


def printer(kind: str, text: str, *, headers: bool) -> Printer:
    return Template(json_path.template(text)) if kind == "jsonpath" else CustomColumns(text, headers)


class Template:
    """A JSONPath template, which contains its own line ends."""

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
        raise InvalidInput(f'invalid custom column "{text}": expected TITLE:PATH, as in NAME:.metadata.name')
    return title, json_path.relaxed_path(path)


def _split(text: str) -> Iterator[str]:
    """Split at commas, except for those inside brackets, which belong to a path."""
    depth, begun = 0, 0
    for index, character in enumerate(text):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and depth == 0:
            yield text[begun:index]
            begun = index + 1
    yield text[begun:]


def order_by(text: str) -> Callable[[list[Found]], list[Found]]:
    """Return a function that sorts objects, or the rows of tables that were requested with whole objects."""
    path = json_path.relaxed_path(text)

    def order(found: list[Found]) -> list[Found]:
        if not found:
            return found
        resource, first = found[0]
        if first.get("kind") == "Table":
            rows = [row for f in found for row in rows_of(f.document)]
            return [Found(resource, first | {"rows": sorted(rows, key=lambda row: _sort_key(path, row.get("object")))})]
        objects = [o for f in found for o in f.objects]
        return [Found(resource, o) for o in sorted(objects, key=lambda o: _sort_key(path, o))]

    return order


def _sort_key(path: json_path.Path, found: object) -> tuple[int, float, str]:
    """Sort numbers before strings, and objects without a value last."""
    match path.find(found):
        case [int() | float() as number, *_]:
            return 0, number, ""
        case [value, *_]:
            return 1, 0, json_path.text_of(value)
    return 2, 0, ""
