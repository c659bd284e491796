"""Rules for affinity and anti-affinity between pods."""

from collections.abc import Sequence

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import label_selector
from devlet.objects.validation.field_errors import Causes, forbidden, invalid, name_errors, required

WEIGHT_MAX = 100


def check(affinity: Document, path: str) -> Causes:
    for i, term in enumerate(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()):
        yield from _check_term(term, f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{i}]")
    for i, item in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        item_path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{i}]"
        if not 1 <= item.get("weight", 0) <= WEIGHT_MAX:
            yield invalid(f"{item_path}.weight", item.get("weight", 0), f"must be in the range 1-{WEIGHT_MAX}")
        yield from _check_term(item.get("podAffinityTerm") or {}, f"{item_path}.podAffinityTerm")


def _check_term(term: Document, path: str) -> Causes:
    for member in ("labelSelector", "namespaceSelector"):
        if selector := term.get(member):
            yield from label_selector.check(selector, f"{path}.{member}")
    for name in term.get("namespaces") or ():
        yield from name_errors(f"{path}.namespace", name, names.dns_label)
    for member in ("matchLabelKeys", "mismatchLabelKeys"):
        yield from _check_keys(term.get(member) or (), term, f"{path}.{member}")
    if not (key := term.get("topologyKey", "")):
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from name_errors(f"{path}.topologyKey", key, names.label_key)


def _check_keys(keys: Sequence[str], term: Document, path: str) -> Causes:
    if keys and term.get("labelSelector") is None:
        yield forbidden(path, "must not be specified when labelSelector is not set")
    for i, key in enumerate(keys):
        yield from name_errors(f"{path}[{i}]", key, names.label_key)
