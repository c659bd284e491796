"""Rules for a claim's allocation when it is first written. Afterwards it can only be removed."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import conditions, config, node_selector, toleration
from devlet.objects.validation.amounts import check_not_negative
from devlet.objects.validation.claim import check_reference, check_references, request_references
from devlet.objects.validation.field_errors import Causes, name_errors, not_supported, required, required_name, too_many

RESULTS_MAX = 32
CONFIG_MAX = 64

_SOURCES = ("FromClaim", "FromClass")


def check(allocation: Document, path: str, claim_spec: Document) -> Causes:
    known = request_references((claim_spec.get("devices") or {}).get("requests") or [])
    devices = allocation.get("devices") or {}
    yield from _check_results(devices.get("results") or [], f"{path}.devices.results", known)
    yield from _check_configs(devices.get("config") or [], f"{path}.devices.config", known)
    if allocation.get("nodeSelector") is not None:
        yield from node_selector.check(allocation["nodeSelector"], f"{path}.nodeSelector")


def _check_results(results: list[Document], path: str, known: set[str]) -> Causes:
    if len(results) > RESULTS_MAX:
        yield too_many(path, len(results), RESULTS_MAX)
        return
    for i, result in enumerate(results):
        yield from _check_result(result, f"{path}[{i}]", known)


def _check_result(result: Document, path: str, known: set[str]) -> Causes:
    yield from check_reference(result.get("request", ""), f"{path}.request", known)
    yield from required_name(f"{path}.driver", result.get("driver", ""), names.driver_name)
    yield from required_name(f"{path}.pool", result.get("pool", ""), names.pool_name)
    yield from required_name(f"{path}.device", result.get("device", ""), names.dns_label)
    yield from conditions.check_binding(result, path)
    yield from toleration.check(result.get("tolerations") or [], f"{path}.tolerations")
    if "shareID" in result:
        yield from name_errors(f"{path}.shareID", result["shareID"], names.uuid)
    for name, amount in (result.get("consumedCapacity") or {}).items():
        if cause := check_not_negative(f"{path}.consumedCapacity[{name}]", amount):
            yield cause


def _check_configs(configs: list[Document], path: str, known: set[str]) -> Causes:
    if len(configs) > CONFIG_MAX:
        yield too_many(path, len(configs), CONFIG_MAX)
        return
    for i, item in enumerate(configs):
        source = item.get("source", "")
        if not source:
            yield required(f"{path}[{i}].source")
        elif source not in _SOURCES:
            yield not_supported(f"{path}[{i}].source", source, _SOURCES)
        yield from check_references(item.get("requests") or [], f"{path}[{i}].requests", known)
        yield from config.check(item, f"{path}[{i}]")
