"""Rules for CustomResourceDefinition: the conditions for serving the kind that it describes."""

from typing import Any

from devlet.objects import names
from devlet.objects.documents import Document, count_objects
from devlet.objects.kinds import BUILT_IN_GROUPS
from devlet.objects.validation.field_errors import (
    Causes,
    duplicates,
    immutable,
    invalid,
    name_errors,
    not_supported,
    required,
    too_many,
)

VERSIONS_MAX = 100
SCHEMA_OBJECTS_MAX = 30_000  # in the schemas of all versions; clients that ask for OpenAPI get all of them


def check(document: Document) -> Causes:
    """Check a definition. The kind is not in the schema table, so its types have not been checked before."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        yield required("spec")
        return
    group, kinds = spec.get("group"), spec.get("names")
    if not isinstance(group, str) or not group:
        yield required("spec.group")
    elif group in BUILT_IN_GROUPS:
        yield invalid("spec.group", group, "is a group of the server's own")
    else:
        yield from name_errors("spec.group", group, names.dns_subdomain)
    if not isinstance(kinds, dict):
        yield required("spec.names")
    else:
        yield from _check_names(kinds)
        name = (document.get("metadata") or {}).get("name", "")
        if isinstance(kinds.get("plural"), str) and isinstance(group, str) and name != f"{kinds['plural']}.{group}":
            yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    yield from _check_versions(spec.get("versions"))


def check_update(document: Document, old: Document) -> Causes:
    """Reject changes of the names under which objects are stored."""
    new, before = document.get("spec") or {}, old.get("spec") or {}
    if not isinstance(new, dict) or not isinstance(new.get("names"), dict) or not before:
        return
    yield from immutable("spec.group", new.get("group"), before.get("group"))
    yield from immutable("spec.scope", new.get("scope"), before.get("scope"))
    for member in ("plural", "kind"):
        yield from immutable(f"spec.names.{member}", new["names"].get(member), before["names"].get(member))


def _check_names(kinds: Document) -> Causes:
    for member, rule in (("plural", names.dns1035_label), ("kind", None)):
        value = kinds.get(member)
        if not isinstance(value, str) or not value:
            yield required(f"spec.names.{member}")
        else:
            yield from name_errors(
                f"spec.names.{member}", value.lower() if rule is None else value, names.dns1035_label
            )
    for member in ("shortNames", "categories"):
        values = kinds.get(member) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            yield invalid(f"spec.names.{member}", values, "must be a list of names")


def _check_versions(versions: Any) -> Causes:
    path = "spec.versions"
    if not isinstance(versions, list) or not versions or len(versions) > VERSIONS_MAX:
        yield required(path, f"between 1 and {VERSIONS_MAX} versions")
        return
    if not all(isinstance(version, dict) and isinstance(version.get("name"), str) for version in versions):
        yield invalid(path, "", "every version must be an object with a name")
        return
    objects = sum(count_objects(version.get("schema")) for version in versions)
    if objects > SCHEMA_OBJECTS_MAX:
        yield too_many(f"{path}[*].schema", objects, SCHEMA_OBJECTS_MAX)
    for i, version in enumerate(versions):
        yield from name_errors(f"{path}[{i}].name", version["name"], names.dns1035_label)
    yield from duplicates(path, [version["name"] for version in versions])
    if sum(version.get("storage") is True for version in versions) != 1:
        yield invalid(
            path, [version["name"] for version in versions], "must have exactly one version marked as storage version"
        )
    if not any(version.get("served") is True for version in versions):
        yield invalid(path, [version["name"] for version in versions], "must have at least one version that is served")
