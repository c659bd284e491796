from collections.abc import Iterable
from typing import Any

import pytest

from devlet.auth.admission import Admission
from devlet.auth.authorization import Authorizer
from devlet.auth.rbac import Policy
from devlet.auth.rules import Attributes
from devlet.auth.service_accounts import NODE_NAME, driver_account, groups, username
from devlet.auth.users import User
from devlet.errors import Forbidden, InvalidObject, NotFound
from devlet.objects.documents import Document, copy

UNRELATED = "no relationship found between node 'n1' and this object"
CREATE = "can only create ResourceSlice with the same NodeName as the requesting node"
DELETE = "can only delete ResourceSlice with the same NodeName as the requesting node"


class World:
    def pods_on(self, node: str) -> Iterable[Document]:
        return []

    def slice_node(self, name: str) -> str | None:
        return None


def account(namespace: str, name: str, node: str = "") -> User:
    return User(username(namespace, name), "u", groups(namespace), {NODE_NAME: (node,)} if node else {})


def uid_of(plural: str, namespace: str, name: str) -> str | None:
    return "node-uid" if (plural, name) == ("nodes", "n1") else None


ADMIN = User("admin", groups=("system:masters",))
JANE = User("jane", groups=("system:authenticated",))
NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
DRIVER = account("kube-system", driver_account("gpu.example.com"), "n1")
DEPLOYED = account("ns", "some-driver", "n1")
CONTROLLER = account("ns", "controller")


def granted(user: User, *rules: Document) -> Admission:
    role = {"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": list(rules)}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "name": user.name}],
        "roleRef": {"kind": "ClusterRole", "name": "r"},
    }
    return Admission(Authorizer(World(), lambda: Policy([role, binding])), uid_of)


ADMISSION = Admission(Authorizer(World()), uid_of)


def slices(verb: str, name: str = "") -> Attributes:
    return Attributes(verb, group="resource.k8s.io", version="v1", resource="resourceslices", name=name)


def slice_of(node: str | None, driver: str = "gpu.example.com") -> Document:
    spec: Document = {"driver": driver, "pool": {"name": "p"}}
    spec |= {"nodeName": node} if node else {"allNodes": True}
    return {"metadata": {"name": "s"}, "spec": spec}


def refusal(user: User, wanted: Attributes, new: Document | None, old: Document | None) -> str | None:
    try:
        ADMISSION.admit(user, wanted, new, old)
    except Forbidden as e:
        prefix = f'{e.resource} "{e.name}" is forbidden: '
        assert str(e).startswith(prefix)
        return str(e).removeprefix(prefix)
    return None


@pytest.mark.parametrize("user", [NODE, DRIVER, DEPLOYED], ids=["node", "driver", "deployed"])
@pytest.mark.parametrize(
    ("verb", "new", "old", "text"),
    [
        ("create", "n1", None, None),
        ("create", "n2", None, CREATE),
        ("create", "", None, CREATE),
        ("update", "n1", "n1", None),
        ("update", "n2", "n2", UNRELATED),
        ("patch", "n1", "n2", UNRELATED),
        ("patch", "n2", "n1", UNRELATED),
        ("delete", None, "n1", None),
        ("delete", None, "n2", DELETE),
        ("delete", None, "", DELETE),
    ],
)
def test_a_nodes_credentials_can_only_write_its_own_slices(
    user: User, verb: str, new: str | None, old: str | None, text: str | None
) -> None:
    documents = [slice_of(node) if node is not None else None for node in (new, old)]
    assert refusal(user, slices(verb, "s"), documents[0], documents[1]) == text


@pytest.mark.parametrize("user", [ADMIN, CONTROLLER, JANE], ids=["admin", "controller", "jane"])
def test_other_users_are_not_restricted_to_a_node(user: User) -> None:
    assert refusal(user, slices("create"), slice_of("n2"), None) is None
    assert refusal(user, slices("delete", "s"), None, slice_of(None)) is None


@pytest.mark.parametrize(("verb", "has_new", "has_old"), [("create", 1, 0), ("update", 1, 1), ("delete", 0, 1)])
def test_a_driver_writes_only_its_own_slices(verb: str, has_new: int, has_old: int) -> None:
    def documents(driver: str) -> tuple[Document | None, Document | None]:
        return (slice_of("n1", driver) if has_new else None, slice_of("n1", driver) if has_old else None)

    other = 'driver "gpu.example.com" may not write ResourceSlices of driver "nic.example.com"'
    assert refusal(DRIVER, slices(verb, "s"), *documents("nic.example.com")) == other
    assert refusal(DRIVER, slices(verb, "s"), *documents("GPU.example.com")) is None
    assert refusal(DEPLOYED, slices(verb, "s"), *documents("nic.example.com")) is None


def test_a_driver_cannot_take_over_the_slice_of_another_one() -> None:
    text = refusal(DRIVER, slices("update", "s"), slice_of("n1"), slice_of("n1", "nic.example.com"))
    assert text == 'driver "gpu.example.com" may not write ResourceSlices of driver "nic.example.com"'


def node_object(name: str, **spec: Any) -> Document:
    return {"metadata": {"name": name}, "spec": spec}


def test_a_node_changes_only_itself() -> None:
    def nodes(verb: str, name: str = "") -> Attributes:
        return Attributes(verb, resource="nodes", name=name)

    foreign = 'node "n1" is not allowed to modify node "n9"'
    assert refusal(NODE, nodes("create"), node_object("n1"), None) is None
    assert refusal(NODE, nodes("create"), node_object("n9"), None) == foreign
    assert refusal(NODE, nodes("patch", "n9"), node_object("n9"), node_object("n9")) == foreign
    assert refusal(NODE, nodes("patch", "n1"), node_object("n1", taints=[]), node_object("n1")) is None
    tainted = node_object("n1", taints=[{"key": "a"}])
    assert refusal(NODE, nodes("update", "n1"), node_object("n1"), tainted) == (
        'node "n1" is not allowed to modify taints'
    )


def pod(node: str, labels: Document | None = None, **status: Any) -> Document:
    metadata = {"name": "p", "namespace": "ns"} | ({"labels": labels} if labels else {})
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


@pytest.mark.parametrize(
    ("new", "old", "text"),
    [
        (pod("n1", phase="Running"), pod("n1"), None),
        (pod("n2"), pod("n2"), 'node "n1" can only update pod status for pods with spec.nodeName set to itself'),
        (
            pod("n1", resourceClaimStatuses=[{"name": "a", "resourceClaimName": "theirs"}]),
            pod("n1"),
            'node "n1" cannot update resourceClaimStatuses of pods',
        ),
        (
            pod("n1"),
            pod("n1", extendedResourceClaimStatus={"resourceClaimName": "c"}),
            'node "n1" cannot update extendedResourceClaimStatus of pods',
        ),
        (pod("n1", {"a": "b"}), pod("n1"), 'node "n1" cannot update labels through pod status'),
    ],
)
def test_a_node_reports_on_its_own_pods(new: Document, old: Document, text: str | None) -> None:
    wanted = Attributes("patch", resource="pods", subresource="status", namespace="ns", name="p")
    assert refusal(NODE, wanted, new, old) == text


def test_a_node_deletes_only_its_own_pods() -> None:
    wanted = Attributes("delete", resource="pods", namespace="ns", name="p")
    assert refusal(NODE, wanted, None, pod("n1")) is None
    assert refusal(NODE, wanted, None, pod("n2")) == 'node "n1" can only delete pods with spec.nodeName set to itself'


def mirror(node: str, uid: str = "node-uid") -> Document:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    annotations = {"kubernetes.io/config.mirror": "x"}
    metadata = {"name": "p", "namespace": "ns", "annotations": annotations, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": []}}


def test_a_node_creates_only_mirrors_of_its_own_pods() -> None:
    wanted = Attributes("create", resource="pods", namespace="ns")
    assert refusal(NODE, wanted, mirror("n1"), None) is None
    assert refusal(NODE, wanted, mirror("n2"), None) == (
        'node "n1" can only create pods with spec.nodeName set to itself'
    )
    assert refusal(NODE, wanted, mirror("n1", "another"), None) == (
        "node n1 UID mismatch: expected another got node-uid"
    )
    with pytest.raises(NotFound, match='nodes "n3" not found'):
        ADMISSION.admit(User("system:node:n3", groups=NODE.groups), wanted, mirror("n3"), None)


def test_a_node_writes_only_its_own_lease() -> None:
    wanted = Attributes("create", group="coordination.k8s.io", resource="leases", namespace="kube-node-lease")
    assert refusal(NODE, wanted, node_object("n1"), None) is None
    assert refusal(NODE, wanted, node_object("n2"), None) == (
        "can only access node lease with the same name as the requesting node"
    )


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (None, "node requested token not bound to a pod"),
        ({"kind": "Node", "uid": "u"}, "node requested token not bound to a pod"),
        ({"kind": "Pod"}, "node requested token with a pod binding without a uid"),
        ({"kind": "Pod", "uid": "u"}, None),
    ],
)
def test_a_node_gets_tokens_for_pods_only(bound: Document | None, text: str | None) -> None:
    wanted = Attributes("create", resource="serviceaccounts", subresource="token", namespace="ns", name="sa")
    assert refusal(NODE, wanted, {"spec": {"boundObjectRef": bound}}, None) == text


@pytest.mark.parametrize("verb", ["update", "patch"])
def test_an_update_or_patch_that_creates_requires_the_right_to_create(verb: str) -> None:
    rule = {"verbs": ["update", "patch"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    lease = Attributes(verb, "", "coordination.k8s.io", "v1", "leases", "", "ns", "l")
    new, may = node_object("l"), granted(JANE, rule)
    may.admit(JANE, lease, new, new)
    with pytest.raises(Forbidden) as refused:
        may.admit(JANE, lease, new, None)
    assert str(refused.value) == (
        'leases.coordination.k8s.io "l" is forbidden: User "jane" cannot create resource "leases" in API group'
        ' "coordination.k8s.io" in the namespace "ns"'
    )
    granted(JANE, rule | {"verbs": [verb, "create"]}).admit(JANE, lease, new, None)
    ADMISSION.admit(ADMIN, lease, new, None)


def rbac(resource: str, namespace: str = "") -> Attributes:
    return Attributes("create", group="rbac.authorization.k8s.io", version="v1", resource=resource, namespace=namespace)


RULES: Document = {"verbs": ["escalate"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]}
BINDS: Document = RULES | {"verbs": ["bind"], "resourceNames": ["view"]}


def test_granting_rights_requires_the_verbs_escalate_or_bind() -> None:
    role = {"metadata": {"name": "all"}, "rules": [{"verbs": ["*"]}]}
    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"}}
    strong = binding | {"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}
    assert (
        refusal(JANE, rbac("clusterroles"), role, None) == 'user "jane" needs the verb "escalate" on clusterroles "all"'
    )
    assert refusal(JANE, rbac("rolebindings", "ns"), binding, None) == (
        'user "jane" needs the verb "bind" on clusterroles "view"'
    )
    assert refusal(ADMIN, rbac("clusterrolebindings"), strong, None) is None
    may = granted(JANE, RULES, BINDS)
    may.admit(JANE, rbac("clusterroles"), role, None)
    may.admit(JANE, rbac("rolebindings", "ns"), binding, None)
    with pytest.raises(Forbidden, match="cluster-admin"):
        may.admit(JANE, rbac("clusterrolebindings"), strong, None)


def status(verb: str = "patch") -> Attributes:
    group = "resource.k8s.io"
    return Attributes(verb, "", group, "v1", "resourceclaims", "status", "ns", "c1")


def selector(node: str) -> Document:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def claim(node: str = "", devices: Iterable[Document] = (), reserved: bool = False) -> Document:
    state: Document = {"devices": list(devices)}
    if node:
        state["allocation"] = {"devices": {"results": []}, "nodeSelector": selector(node)}
    if reserved:
        state["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "u"}]
    return {"metadata": {"name": "c1", "namespace": "ns"}, "status": state}


def report(driver: str = "gpu.example.com", device: str = "gpu-0", **more: Any) -> Document:
    return {"driver": driver, "pool": "n1", "device": device, **more}


def causes(user: User, new: Document, old: Document, admission: Admission = ADMISSION) -> list[tuple[str, str]]:
    try:
        admission.admit(user, status(), new, old)
    except InvalidObject as e:
        assert (e.kind, e.name) == ("ResourceClaim.resource.k8s.io", "c1")
        assert {cause.reason for cause in e.causes} == {"FieldValueForbidden"}
        return [(cause.field, cause.message) for cause in e.causes]
    return []


def test_a_driver_reports_on_its_devices_in_claims_of_its_node() -> None:
    assert causes(DRIVER, claim("n1", [report()]), claim("n1")) == []
    assert causes(DRIVER, claim("n1", [report(data={})]), claim("n1", [report()])) == []
    assert causes(DRIVER, claim("n1"), claim("n1", [report()])) == []
    assert causes(ADMIN, claim("n2", [report("x")], reserved=True), claim()) == []


def test_a_report_for_another_driver_is_refused() -> None:
    [(field, text)] = causes(DRIVER, claim("n1", [report(), report("nic.example.com")]), claim("n1"))
    assert field == "status.devices"
    assert text == (
        'Forbidden: changing status.devices requires resource="resourceclaims/driver",'
        ' verb="[associated-node:patch arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io'
        ' "nic.example.com" is forbidden: User "system:serviceaccount:kube-system:devlet-driver-gpu.example.com" cannot'
        ' associated-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "ns"'
    )


@pytest.mark.parametrize("elsewhere", ["n2", "any"])
def test_a_claim_of_another_node_requires_the_right_for_arbitrary_nodes(elsewhere: str) -> None:
    new, old = claim(elsewhere, [report()]), claim(elsewhere)
    if elsewhere == "any":
        for document in (new, old):
            document["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"] *= 2
    [(_, text)] = causes(DRIVER, new, old)
    assert 'verb="[arbitrary-node:patch]"' in text
    rule = {
        "verbs": ["arbitrary-node:patch"],
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims/driver"],
        "resourceNames": ["gpu.example.com"],
    }
    assert causes(DRIVER, new, old, granted(DRIVER, rule)) == []


@pytest.mark.parametrize("fields", [2, 0])
def test_a_selector_with_other_conditions_is_not_for_a_single_node(fields: int) -> None:
    new = claim("n1", [report()])
    term = new["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]
    if fields:
        term["matchFields"] *= fields
    else:
        term["matchExpressions"] = [{"key": "a", "operator": "Exists"}]
    old = copy(new)
    old["status"]["devices"] = []
    [(_, text)] = causes(DRIVER, new, old)
    assert 'verb="[arbitrary-node:patch]"' in text


def test_a_refusal_names_every_driver_whose_report_changes() -> None:
    before = claim("n1", [report("a.example.com"), report("b.example.com"), report("c.example.com", "x")])
    after = claim("n1", [report("a.example.com"), report("b.example.com", data={"x": 1}), report("d.example.com")])
    named = [text.partition('.k8s.io "')[2].partition('"')[0] for _, text in causes(DRIVER, after, before)]
    assert named == ["b.example.com", "c.example.com", "d.example.com"]


def test_allocating_and_reserving_require_the_right_to_bind() -> None:
    expected = (
        "status.allocation",
        'Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding",'
        ' verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "jane" cannot patch resource'
        ' "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope',
    )
    assert causes(JANE, claim("n1"), claim()) == [expected]
    assert causes(JANE, claim("n1", reserved=True), claim("n1")) == [expected]
    rule = {"verbs": ["patch"], "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/binding"]}
    assert causes(JANE, claim("n1", reserved=True), claim(), granted(JANE, rule)) == []


def test_reports_that_are_removed_with_the_allocation_require_no_other_right() -> None:
    assert [field for field, _ in causes(JANE, claim(), claim("n1", [report()]))] == ["status.allocation"]


def test_an_update_without_a_change_requires_no_other_right() -> None:
    assert causes(JANE, claim("n1", [report()]), claim("n1", [report()])) == []
    assert causes(JANE, {"metadata": {"name": "c1"}}, claim()) == []
