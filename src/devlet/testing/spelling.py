"""Check words that tests pass by name. An unknown word is an error, which suggests the one that was probably meant."""

from collections.abc import Collection
from difflib import get_close_matches

import grpc

from devlet.errors import InvalidInput

__all__ = ["check_word", "status_code"]


def check_word(word: str, known: Collection[str], what: str) -> None:
    """Raise InvalidInput if `word` is not known. `what` names its kind."""
    if word not in known:
        near = get_close_matches(word, known, 1) or get_close_matches(word.upper(), known, 1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise InvalidInput(f"there is no {what} {word!r}: {meant}there are {', '.join(known)}")


def status_code(name: str) -> grpc.StatusCode:
    """Return a gRPC status by name, such as `INTERNAL`."""
    check_word(name, [each.name for each in grpc.StatusCode], "gRPC status")
    return grpc.StatusCode[name]
