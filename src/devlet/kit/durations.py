"""Durations as people write them: `1.5`, `2s`, `1m30s`, `500ms`. In code they are seconds, as float.

A bare number is seconds; the units are those of Go's durations, which Kubernetes configuration uses.
"""

import math
import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_MAX_CHARACTERS = 64


def parse(text: str) -> float:
    """Return the seconds. Raise ValueError if the text is not a duration, or is negative."""
    if len(text) > _MAX_CHARACTERS:
        raise ValueError("too long for a duration")
    if _NUMBER.fullmatch(text):
        return _finite(float(text))
    pieces = list(_PIECE.finditer(text))
    if not pieces or "".join(p.group() for p in pieces) != text:
        raise ValueError(f'"{text}" is not a duration such as 2s, 500ms or 1m30s')
    return _finite(sum(float(p[1]) * _UNITS[p[2]] for p in pieces))


def _finite(seconds: float) -> float:
    if not math.isfinite(seconds):
        raise ValueError("a duration must be finite")
    return seconds
