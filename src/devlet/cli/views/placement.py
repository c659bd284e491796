"""The result of `devlet simulate`: a line for each pod or claim, with its devices or why it gets none."""

from collections.abc import Iterator, Sequence

from devlet.cli.simulation import Placement
from devlet.cli.tables import Layout, cell_text
from devlet.objects.types.claim import DeviceResult

NONE = "<none>"


def lines(placements: Sequence[Placement], *, wide: bool = False, headers: bool = True) -> Iterator[str]:
    """Yield the table. Namespaces are shown if there are several, and causes if something does not fit."""
    namespaces = len({placement.namespace for placement in placements}) > 1
    causes = any(placement.cause for placement in placements)
    header = ["NAMESPACE"] * namespaces + ["NAME", "NODE", "DEVICES"] + ["CAUSE"] * causes
    rows = [
        [placement.namespace] * namespaces
        + [placement.name, placement.node or NONE, _devices(placement, wide) or NONE]
        + [cell_text(placement.cause)] * causes
        for placement in placements
    ]
    for line in Layout().lines([header, *rows] if headers else rows):
        yield line.rstrip()


def _devices(placement: Placement, wide: bool) -> str:
    results = [result for claim in placement.claims for result in claim.results]
    return ",".join(_wide(result) if wide else result.device for result in results)


def _wide(result: DeviceResult) -> str:
    amounts = "".join(f" {name}={amount}" for name, amount in sorted(result.consumed_capacity.items()))
    extra = amounts.strip() + (" admin" if result.admin_access else "")
    return f"{result.request}={result.identity}" + (f"({extra.strip()})" if extra else "")
