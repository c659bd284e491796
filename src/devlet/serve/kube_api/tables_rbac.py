"""The rows of role bindings."""

from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import mappings, name, text
from devlet.objects.table_cells import AGE, NAME, Cell, Column, Printer, age, wide

__all__ = ["ROLE_BINDINGS"]


def _cells(document: Document, now: datetime) -> list[Cell]:
    return [
        name(document),
        f"{text(document, 'roleRef', 'kind')}/{text(document, 'roleRef', 'name')}",
        age(document, now),
        *(_subjects(document, kind) for kind in ("User", "Group", "ServiceAccount")),
    ]


def _subjects(document: Document, kind: str) -> str:
    subjects = [subject for subject in mappings(document, "subjects") if subject.get("kind") == kind]
    prefixes = [f"{text(subject, 'namespace')}/" if kind == "ServiceAccount" else "" for subject in subjects]
    return ", ".join(prefix + text(subject, "name") for prefix, subject in zip(prefixes, subjects, strict=True))


ROLE_BINDINGS = Printer(
    (
        NAME,
        Column("Role", description="The role that the subjects get."),
        AGE,
        wide("Users"),
        wide("Groups"),
        wide("ServiceAccounts"),
    ),
    _cells,
)
