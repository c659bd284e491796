"""Rules for Role and ClusterRole.

Authorization compares each request of a subject with all rules of its roles, so their number is limited.
"""

from devlet.objects.documents import Document
from devlet.objects.subdocuments import mappings
from devlet.objects.validation.field_errors import Causes, too_many

__all__ = ["WORDS_MAX", "check"]

WORDS_MAX = 20_000  # verbs, groups, resources, names and URLs of all rules of a role

_LISTS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def check(role: Document) -> Causes:
    words = sum(max(sum(len(rule.get(key) or ()) for key in _LISTS), 1) for rule in mappings(role, "rules"))
    if words > WORDS_MAX:
        yield too_many("rules", words, WORDS_MAX)
