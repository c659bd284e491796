"""Request ids: one for each attempt of a pod's worker, and for each clean-up of claims that a pod left behind.

They are in the log lines of the node and of the drivers that it calls.

The node binds `requestID` (`kit.facts`) and sends it with each gRPC call as metadata. An SDK driver binds the id that
it got, so that `grep requestID=…` finds both ends of a call.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from devlet.kit.chance import random
from devlet.kit.facts import bound

__all__ = ["FACT", "METADATA", "is_valid", "new", "request"]

FACT = "requestID"  # in log lines
METADATA = "devlet-request-id"  # in gRPC calls

_valid = re.compile(r"[A-Za-z0-9_.-]{1,64}").fullmatch


def new() -> str:
    return f"{random.getrandbits(32):08x}"


@contextmanager
def request() -> Iterator[None]:
    """Bind a new id in the block."""
    with bound(**{FACT: new()}):
        yield


def is_valid(text: object) -> bool:
    """Return True if a text from outside may stand in log lines."""
    return isinstance(text, str) and _valid(text) is not None
