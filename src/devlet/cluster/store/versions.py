"""resourceVersion as clients write it: decimal digits, opaque to them, a position in our log to us."""

from devlet.errors import BadRequest


def parse_version(text: str) -> int:
    """Empty is 0."""
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        raise BadRequest(f'Invalid value: "{text}": resourceVersion must be a decimal number')
    return int(text)
