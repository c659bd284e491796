"""Lists: one page of the objects as they were at one version, which may be older than the newest."""

from dataclasses import dataclass

from anyio.lowlevel import checkpoint

from devlet.cluster.client import ListOptions, VersionMatch
from devlet.cluster.store import pages
from devlet.cluster.store.ledger import Ledger
from devlet.cluster.store.pages import Position
from devlet.cluster.store.records import Documents, Record
from devlet.cluster.store.selection import Selection, parse_version
from devlet.errors import BadRequest, Cause, Expired, InvalidObject, Unavailable
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import Kind


@dataclass(frozen=True, slots=True)
class Page:
    records: list[Record]
    version: int
    continue_: str = ""
    remaining: int | None = None

    def documents(self, api_version: str) -> Documents:
        return Documents(self.records, api_version)


async def page(ledger: Ledger, kind: Kind, selection: Selection, options: ListOptions) -> Page:
    await checkpoint()
    _check(options)
    position = pages.decode(options.continue_) if options.continue_ else None
    version = await _version(ledger, options, position)
    after = position.after if position else None
    # No await between here and the end of _current: the state must not move while it is read.
    if version == ledger.version or not ledger.table(kind).changes(version):
        records, left = _current(ledger, kind, selection, options.limit, after)
    else:
        records, left = await _past(ledger, kind, selection, options.limit, after, version)
    more = Position(version, records[-1].key).encode() if left else ""
    return Page(records, version, more, left if left and not selection.selects else None)


def _check(options: ListOptions) -> None:
    causes = []
    match, version = options.version_match, options.resource_version
    if match is not VersionMatch.ANY and not version:
        text = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(Cause("FieldValueForbidden", text, "resourceVersionMatch"))
    if match is VersionMatch.EXACT and version == "0":
        text = 'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        causes.append(Cause("FieldValueForbidden", text, "resourceVersionMatch"))
    if causes:
        raise InvalidObject("ListOptions.meta.k8s.io", "", causes)
    if options.continue_ and version:
        raise BadRequest("specifying resource version is not allowed when using continue")


async def _version(ledger: Ledger, options: ListOptions, position: Position | None) -> int:
    """Return the version of the page."""
    if position is not None:
        if position.version and position.version < ledger.compacted:
            raise Expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new"
                " list without the continue parameter, or use the continue token in this response to retrieve the"
                " remainder of the results. Continuing with the provided token results in an inconsistent list.",
                fresh_continue=Position(0, position.after).encode(),
            )
        return min(position.version or ledger.version, ledger.version)
    asked = parse_version(options.resource_version)
    if asked and not await ledger.reach(asked):
        raise Unavailable(f"Too large resource version: {asked}, current: {ledger.version}")
    if options.version_match is not VersionMatch.EXACT:
        return ledger.version
    if asked < ledger.compacted:
        raise Expired(f"The resourceVersion for the provided list is too old: {asked} ({ledger.compacted})")
    return asked


def _current(
    ledger: Ledger, kind: Kind, selection: Selection, limit: int, after: ObjectKey | None
) -> tuple[list[Record], int]:
    table = ledger.table(kind)
    records: list[Record] = []
    keys = list(table.keys(selection.namespace, after))
    for i, key in enumerate(keys):
        if 0 < limit == len(records):
            return records, len(keys) - i
        if selection.matches(record := table.records[key]):
            records.append(record)
    return records, 0


async def _past(
    ledger: Ledger, kind: Kind, selection: Selection, limit: int, after: ObjectKey | None, version: int
) -> tuple[list[Record], int]:
    """Return the page like `_current`, but with the changes since `version` undone."""
    table = ledger.table(kind)
    current = dict(table.records)
    then = table.versions_at(version)
    rows = await ledger.read([v for v in then.values() if v])
    if version < ledger.compacted:
        raise Expired(f"The resourceVersion for the provided list is too old: {version} ({ledger.compacted})")
    for key, had in then.items():
        row = rows.get(had)
        if row is None or row.deleted:
            current.pop(key, None)
        else:
            current[key] = Record(key, row.version, row.body)
    namespace = selection.namespace
    keys = sorted(k for k in current if (not namespace or k[0] == namespace) and (after is None or k > after))
    records: list[Record] = []
    for i, key in enumerate(keys):
        if 0 < limit == len(records):
            return records, len(keys) - i
        if selection.matches(current[key]):
            records.append(current[key])
    return records, 0
