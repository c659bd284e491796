"""The work of `devlet cel eval --cases`: one line of JSON per case.

A case that cannot be read is reported on standard error and does not stop the others.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from devlet.alloc.cases import answer_case, read_case
from devlet.cli.cel_eval import deadline
from devlet.cli.session import Document
from devlet.errors import InvalidInput

MAX_BYTES: Final = 256 << 20


def answers(content: bytes, origin: str, seconds: float, complain: Callable[[str], None]) -> Iterator[Document]:
    """Yield the answers of the cases in order. `seconds` limits each evaluation."""
    for index, document in enumerate(_cases(content, origin)):
        try:
            case = read_case(document, index)
        except InvalidInput as e:
            complain(f"{origin}: {e}")
            continue
        yield answer_case(case, deadline(seconds))


def _cases(content: bytes, origin: str) -> list[Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as e:
        raise InvalidInput(f"{origin}: invalid JSON: {e}") from e
    if not isinstance(found, list):
        raise InvalidInput(f"{origin}: expected a JSON list of cases, each with id, expression and device")
    return found


def read(source: str) -> tuple[bytes, str]:
    """Return the content of a file, or of standard input for `-`, and its name for messages."""
    origin = "standard input" if source == "-" else source
    try:
        if source == "-":
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
    except OSError as e:
        raise InvalidInput(f"cannot read {source}: {e.strerror or e}") from e
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"{origin}: larger than {MAX_BYTES} bytes")
    return content, origin
