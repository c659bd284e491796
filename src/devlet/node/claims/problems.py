"""What drivers could not do, claim by claim, and the error that tells it."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from devlet.errors import NotPrepared
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import DriverName

__all__ = ["Problem", "raise_for", "text_for"]


class Problem(Struct, frozen=True):
    driver: DriverName
    key: ClaimKey
    message: str

    def __str__(self) -> str:
        return f"claim {self.key.name}: driver {self.driver}: {self.message}"


def text_for(key: ClaimKey, problems: Iterable[Problem]) -> str:
    return "; ".join(sorted(f"driver {each.driver}: {each.message}" for each in problems if each.key == key))


def raise_for(problems: Sequence[Problem]) -> None:
    """NotPrepared if there is one."""
    if problems:
        drivers = (problem.driver for problem in problems)
        raise NotPrepared("; ".join(sorted(map(str, problems))), drivers=drivers)
