"""`--sort-by`: objects of one kind in the order of a JSONPath, over all answers that a list came in."""

from collections.abc import Callable

from devlet.cli.output import Found
from devlet.cli.tables import rows_of
from devlet.objects import json_path


def order_by(text: str) -> Callable[[list[Found]], list[Found]]:
    """Tables must have been asked for with whole objects, or there is nothing to sort them by."""
    path = json_path.relaxed_path(text)

    def order(found: list[Found]) -> list[Found]:
        if not found:
            return found
        resource, first = found[0]
        if first.get("kind") == "Table":
            rows = [row for f in found for row in rows_of(f.document)]
            return [Found(resource, first | {"rows": sorted(rows, key=lambda row: _key(path, row.get("object")))})]
        objects = [o for f in found for o in f.objects]
        return [Found(resource, o) for o in sorted(objects, key=lambda o: _key(path, o))]

    return order


def _key(path: json_path.Path, found: object) -> tuple[int, float, str]:
    """Numbers before texts, what has neither at the end."""
    match path.find(found):
        case [int() | float() as number, *_]:
            return 0, number, ""
        case [value, *_]:
            return 1, 0, json_path.text_of(value)
    return 2, 0, ""
