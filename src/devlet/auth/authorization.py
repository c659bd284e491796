"""Who may do what.

    system:masters                 everything
    every user                     version and health
    authenticated users            discovery, OpenAPI, and questions about themselves
    nodes                          see `node_rules`
    drivers with a node's token    read; write slices and device reports, which `admission` limits to their own
    other service accounts         read
    subjects of RBAC bindings      what the bound roles allow, in addition

Reading secrets always requires an explicit grant. Whatever is not allowed is denied, with a reason where there is one.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from devlet.auth import node_rules, service_accounts
from devlet.auth.node_rules import Relations, selected
from devlet.auth.rbac import Policy
from devlet.auth.rules import EVERYTHING, READ, Attributes, Decision, Rule
from devlet.auth.users import AUTHENTICATED, MASTERS, User, node_name
from devlet.errors import Forbidden
from devlet.objects.kinds import RESOURCE_SLICES, qualified

__all__ = ["Authorizer", "Relations", "forbidden"]

_GET = ("get", "head")

PUBLIC = (Rule(_GET, urls=("/version", "/version/", "/healthz", "/livez", "/readyz")),)
KNOWN = (
    Rule(
        _GET,
        urls=(
            *("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"),
            *("/.well-known/openid-configuration", "/openid/v1/jwks"),
        ),
    ),
    Rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
    Rule(("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
)
READER = (Rule(READ, ("*",), ("*",), but=("secrets",)),)
DRIVER = (
    Rule(("create", "update", "patch", "delete"), ("resource.k8s.io",), ("resourceslices",)),
    Rule(("update", "patch"), ("resource.k8s.io",), ("resourceclaims/status",)),
    Rule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),
)
_REPORTS = ("associated-node:patch", "associated-node:update")


class Authorizer:
    """`policy` returns the grants of the current RBAC objects."""

    def __init__(self, relations: Relations, policy: Callable[[], Policy] = Policy) -> None:
        self._relations = relations
        self._policy = policy

    def authorize(self, user: User, wanted: Attributes) -> Decision:
        if MASTERS in user.groups:
            return Decision(True)
        if any(rule.allows(wanted) for rule in self._own_rules(user)):
            return Decision(True)
        decision = self._special(user, wanted)
        if decision.allowed or _is_settled(user, wanted):
            return decision
        reason = self._policy().allows(user, wanted)
        return decision if reason is None else Decision(True, reason)

    def require(self, user: User, wanted: Attributes) -> None:
        """Raise Forbidden, with the text that clients expect, unless the user may do this."""
        decision = self.authorize(user, wanted)
        if not decision.allowed:
            raise forbidden(user, wanted, decision.reason)

    def rules(self, user: User, namespace: str = "") -> list[Rule]:
        """Return what the user may do in a namespace, as far as rules can express it: a node may do more."""
        if MASTERS in user.groups:
            return list(EVERYTHING)
        granted = [rule for grant in self._policy().grants(user, namespace) for rule in grant.rules]
        return [*self._own_rules(user), *granted]

    def is_complete(self, user: User) -> bool:
        """Return whether `rules` lists everything that the user may do."""
        return node_name(user) is None

    def _own_rules(self, user: User) -> Iterator[Rule]:
        yield from PUBLIC
        if AUTHENTICATED in user.groups:
            yield from KNOWN
        if service_accounts.split_username(user.name) and service_accounts.GROUP in user.groups:
            yield from READER
        if driver := service_accounts.node_driver(user):
            yield from DRIVER
            yield Rule(_REPORTS, ("resource.k8s.io",), ("resourceclaims/driver",), (driver,))
        if node_name(user):
            yield from node_rules.ALWAYS

    def _special(self, user: User, wanted: Attributes) -> Decision:
        """Decide about requests that rules alone cannot decide."""
        if node := node_name(user):
            return node_rules.decide(node, wanted, self._relations) if wanted.is_resource else Decision(False)
        if _is_settled(user, wanted):
            return self._slices_of_token(user, wanted)
        if (
            (driver := service_accounts.node_driver(user))
            and wanted.subresource == "driver"
            and wanted.resource == "resourceclaims"
        ):
            folded = replace(wanted, name=wanted.name.lower())
            return Decision(Rule(_REPORTS, ("resource.k8s.io",), ("*",), (driver,)).allows(folded))
        return Decision(False)

    def _slices_of_token(self, user: User, wanted: Attributes) -> Decision:
        """Decide whether a token that is for one node may delete many slices at once: a grant alone is not enough."""
        node, driver = service_accounts.node_of(user) or "", service_accounts.node_driver(user)
        decision = node_rules.slices_of(node, wanted)
        if not decision.allowed:
            return decision
        if driver is None:
            reason = self._policy().allows(user, wanted)
            return Decision(reason is not None, reason or "")
        if (selected(wanted, RESOURCE_SLICES, "spec.driver") or "").lower() == driver:
            return Decision(True)
        return Decision(False, "can only deletecollection resourceslices with driver field selector")


def _is_settled(user: User, wanted: Attributes) -> bool:
    """Return whether RBAC has no say: a token for a node never reaches the slices of other nodes."""
    return (
        (wanted.verb, wanted.group, wanted.resource) == ("deletecollection", "resource.k8s.io", "resourceslices")
        and node_name(user) is None
        and service_accounts.node_of(user) is not None
    )


def forbidden(user: User, wanted: Attributes, reason: str = "") -> Forbidden:
    """Return the error in Kubernetes' words."""
    after = f": {reason}" if reason else ""
    if not wanted.is_resource:
        return Forbidden(f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"{after}')
    resource = qualified(wanted.resource, f"{wanted.group}/v" if wanted.group else "v")
    what = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    subject = f'{resource} "{wanted.name}"' if wanted.name else resource
    return Forbidden(
        f'{subject} is forbidden: User "{user.name}" cannot {wanted.verb} resource "{what}" in API group'
        f' "{wanted.group}" {where}{after}',
        resource=resource,
        name=wanted.name,
    )
