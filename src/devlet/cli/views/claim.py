"""A resource claim: its requests, devices, nodes and consumers, and what it waits for."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views import prepared_claim
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import amounts, fields, section, table
from devlet.objects.subdocuments import at, mappings, text, texts

CLAIMS = "resourceclaims.resource.k8s.io"


def view(claim: Document, reader: Reader) -> Iterator[str]:
    yield from fields([("State", state(claim)), ("Nodes", nodes(claim))])
    prepared = _prepared(claim, reader)
    yield from prepared_claim.summary(claim, prepared, reader)
    requests = [_request(r) for r in mappings(claim, "spec", "devices", "requests")]
    yield from section("Requests", table(["NAME", "CLASS", "COUNT", "CAPACITY"], requests))
    rows = [[r["request"], r["driver"], r["pool"], r["device"]] for r in devices(claim)]
    yield from section("Devices", table(["REQUEST", "DRIVER", "POOL", "DEVICE"], rows))
    users = [[text(u, "resource"), text(u, "name"), text(u, "uid")] for u in mappings(claim, "status", "reservedFor")]
    yield from section("Used by", table(["RESOURCE", "NAME", "UID"], users))
    if mappings(claim, "status", "devices"):
        yield from section("Device status", table(["DRIVER", "POOL", "DEVICE", "CONDITIONS"], [*_statuses(claim)]))
    if prepared is not None:
        yield from prepared_claim.details(prepared, reader)


def _prepared(claim: Document, reader: Reader) -> Document | None:
    """Return the node's view of this claim, and not of an earlier claim with the same name."""
    uid = text(claim, "metadata", "uid")
    namespace, name = text(claim, "metadata", "namespace"), text(claim, "metadata", "name")
    views = reader.all(prepared_claim.PREPARED, namespace) if reader.is_node else ()
    fitting = [v for v in views if text(v, "spec", "uid") == uid] or [
        v for v in views if not text(v, "spec", "uid") and text(v, "metadata", "name") == name
    ]
    return fitting[0] if fitting else None


def _statuses(claim: Document) -> Iterator[list[str]]:
    """Yield the status of the devices that drivers report in the claim itself."""
    for status in mappings(claim, "status", "devices"):
        conditions = mappings(status, "conditions")
        said = ", ".join(f"{text(c, 'type')}={text(c, 'status')}" for c in conditions)
        yield [text(status, "driver"), text(status, "pool"), text(status, "device"), said]


def state(claim: Document) -> str:
    allocated = at(claim, "status", "allocation") is not None
    words = ["deleted"] if at(claim, "metadata", "deletionTimestamp") else []
    words += ["allocated"] if allocated else [] if words else ["pending"]
    return ",".join(words + ["reserved"] * bool(mappings(claim, "status", "reservedFor")))


def devices(claim: Document) -> list[dict[str, str]]:
    found = mappings(claim, "status", "allocation", "devices", "results")
    return [{key: text(result, key) for key in ("request", "driver", "pool", "device")} for result in found]


def nodes(claim: Document) -> str:
    """Return where pods that use the claim can run."""
    if at(claim, "status", "allocation") is None:
        return ""
    terms = mappings(claim, "status", "allocation", "nodeSelector", "nodeSelectorTerms")
    if not terms:
        return "any"
    return " or ".join(_term(term) for term in terms)


def _term(term: Document) -> str:
    parts = mappings(term, "matchFields") + mappings(term, "matchExpressions")
    if len(parts) == 1 and text(parts[0], "key") == "metadata.name" and len(texts(parts[0], "values")) == 1:
        return texts(parts[0], "values")[0]
    return " and ".join(f"{text(p, 'key')} {text(p, 'operator')} {','.join(texts(p, 'values'))}".strip() for p in parts)


def _request(request: Document) -> list[str]:
    alternatives = mappings(request, "firstAvailable")
    if alternatives:
        names = " or ".join(f"{text(a, 'name')} ({text(a, 'deviceClassName')})" for a in alternatives)
        return [text(request, "name"), names, "first available", ""]
    exact = at(request, "exactly") or request  # before v1beta2, the fields are in the request itself
    count = "all" if text(exact, "allocationMode") == "All" else str(at(exact, "count") or 1)
    return [text(request, "name"), text(exact, "deviceClassName"), count, amounts(at(exact, "capacity", "requests"))]
