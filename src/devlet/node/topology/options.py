"""The options of the topology policies: strings as in flags and configuration, checked."""

from collections.abc import Mapping

from msgspec import Struct

from devlet.errors import InvalidInput

__all__ = ["DEFAULT_MAX_NODES", "MAX_NODES", "PREFER_CLOSEST", "Options", "parse"]

PREFER_CLOSEST = "prefer-closest-numa-nodes"
MAX_NODES = "max-allowable-numa-nodes"
DEFAULT_MAX_NODES = 8  # also the least that may be set

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}


class Options(Struct, frozen=True, gc=False):
    prefer_closest: bool = False
    max_nodes: int = DEFAULT_MAX_NODES


def parse(options: Mapping[str, str]) -> Options:
    """Raise InvalidInput for an unknown option or a bad value."""
    for name in options:
        if name not in (PREFER_CLOSEST, MAX_NODES):
            raise InvalidInput(f'unknown topology manager option "{name}": there are {PREFER_CLOSEST} and {MAX_NODES}')
    return Options(
        prefer_closest=_truth(PREFER_CLOSEST, options.get(PREFER_CLOSEST, "false")),
        max_nodes=_number(MAX_NODES, options.get(MAX_NODES, str(DEFAULT_MAX_NODES))),
    )


def _truth(name: str, text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise InvalidInput(f'bad value for topology manager option {name}: "{text}" is neither true nor false')
    return text in _TRUE


def _number(name: str, text: str) -> int:
    digits = text.removeprefix("+")
    if digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) >= DEFAULT_MAX_NODES:
        return int(digits)
    raise InvalidInput(
        f'bad value for topology manager option {name}: "{text}" is not a whole number of at least {DEFAULT_MAX_NODES}'
    )
