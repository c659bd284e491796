"""Who may do what.

    system:masters                 everything
    everybody                      version and health
    authenticated users            discovery, OpenAPI, and questions about themselves
    nodes                          `node_rules`
    drivers with a node's token    read; slices and device reports, which `admission` narrows to their own
    other service accounts         read
    whoever RBAC objects name      what these say, on top

Nobody reads secrets without being given it. What is not allowed is denied; a reason is added where there is one.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from devlet.errors import Forbidden
from devlet.objects.kinds import RESOURCE_SLICES, qualified
from devlet.serve.kube_api import node_rules, service_accounts
from devlet.serve.kube_api.node_rules import Relations, selected
from devlet.serve.kube_api.rbac import EVERYTHING, READ, Policy, Rule
from devlet.serve.kube_api.requests import AUTHENTICATED, MASTERS, Attributes, Decision, User

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
    """`policy` gives the RBAC objects as they are now."""

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
        """Forbidden, with the text a client expects, unless the user may."""
        decision = self.authorize(user, wanted)
        if not decision.allowed:
            raise forbidden(user, wanted, decision.reason)

    def rules(self, user: User, namespace: str = "") -> list[Rule]:
        """What the user may do in a namespace, as far as rules can say it: a node may do more."""
        if MASTERS in user.groups:
            return list(EVERYTHING)
        granted = [rule for grant in self._policy().grants(user, namespace) for rule in grant.rules]
        return [*self._own_rules(user), *granted]

    def is_complete(self, user: User) -> bool:
        """Whether `rules` says all."""
        return node_rules.node_name(user) is None

    def _own_rules(self, user: User) -> Iterator[Rule]:
        yield from PUBLIC
        if AUTHENTICATED in user.groups:
            yield from KNOWN
        if service_accounts.split_username(user.name) and service_accounts.GROUP in user.groups:
            yield from READER
        if driver := node_driver(user):
            yield from DRIVER
            yield Rule(_REPORTS, ("resource.k8s.io",), ("resourceclaims/driver",), (driver,))
        if node_rules.node_name(user):
            yield from node_rules.ALWAYS

    def _special(self, user: User, wanted: Attributes) -> Decision:
        """What depends on more than rules."""
        if node := node_rules.node_name(user):
            return node_rules.decide(node, wanted, self._relations) if wanted.is_resource else Decision(False)
        if _is_settled(user, wanted):
            return self._slices_of_token(user, wanted)
        if (driver := node_driver(user)) and wanted.subresource == "driver" and wanted.resource == "resourceclaims":
            folded = replace(wanted, name=wanted.name.lower())
            return Decision(Rule(_REPORTS, ("resource.k8s.io",), ("*",), (driver,)).allows(folded))
        return Decision(False)

    def _slices_of_token(self, user: User, wanted: Attributes) -> Decision:
        """Deleting many slices at once, with a token that is for one node: the rights of RBAC are not enough."""
        node, driver = service_accounts.node_of(user) or "", node_driver(user)
        decision = node_rules.slices_of(node, wanted)
        if not decision.allowed:
            return decision
        if driver is None:
            reason = self._policy().allows(user, wanted)
            return Decision(reason is not None, reason or "")
        if (selected(wanted, RESOURCE_SLICES, "spec.driver") or "").lower() == driver:
            return Decision(True)
        return Decision(False, "can only deletecollection resourceslices with driver field selector")


def node_driver(user: User) -> str | None:
    """The driver, in lower case, if the user is one on a node."""
    return service_accounts.driver_of(user) if service_accounts.node_of(user) else None


def _is_settled(user: User, wanted: Attributes) -> bool:
    """RBAC has nothing to add: a node's token stays with the node's slices."""
    return (
        (wanted.verb, wanted.group, wanted.resource) == ("deletecollection", "resource.k8s.io", "resourceslices")
        and node_rules.node_name(user) is None
        and service_accounts.node_of(user) is not None
    )


def forbidden(user: User, wanted: Attributes, reason: str = "") -> Forbidden:
    """As Kubernetes words it."""
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
