"""Rules for counters: the sets that a slice offers (`sharedCounters`) and what a device takes (`consumesCounters`)."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.amounts import parse, unreadable
from devlet.objects.validation.field_errors import Causes, duplicates, name_errors, required, required_name, too_many

COUNTER_SETS_MAX = 8
COUNTERS_MAX = 32
CONSUMPTIONS_MAX = 2


def check_shared(sets: list[Document], path: str) -> Causes:
    yield from _check_sets(sets, "name", path, COUNTER_SETS_MAX)


def check_consumed(consumptions: list[Document], path: str) -> Causes:
    yield from _check_sets(consumptions, "counterSet", path, CONSUMPTIONS_MAX)


def _check_sets(sets: list[Document], name_member: str, path: str, limit: int) -> Causes:
    if len(sets) > limit:
        yield too_many(path, len(sets), limit)
        return
    for i, item in enumerate(sets):
        yield from required_name(f"{path}[{i}].{name_member}", item.get(name_member, ""), names.dns_label)
        yield from _check_counters(item.get("counters") or {}, f"{path}[{i}].counters")
    yield from duplicates(path, [item.get(name_member, "") for item in sets])


def _check_counters(counters: dict[str, Document], path: str) -> Causes:
    if not counters:
        yield required(path)
    elif len(counters) > COUNTERS_MAX:
        yield too_many(path, len(counters), COUNTERS_MAX)
    else:
        for name, counter in counters.items():
            yield from name_errors(path, name, names.dns_label)
            if parse(counter.get("value", "0")) is None:
                yield unreadable(f"{path}[{name}].value", counter["value"])
