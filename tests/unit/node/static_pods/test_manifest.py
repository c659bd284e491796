from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.node.static_pods.manifest import HASH, MIRROR, SEEN, SOURCE, read
from devlet.objects.identifiers import NodeName

NOW = datetime(2025, 1, 1, tzinfo=UTC)
FILE = Path("/etc/pods/web.yaml")
NODE = NodeName("n1")
TEXT = """
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - {name: main, image: x, resources: {limits: {vendor.com/gpu: 1}}}
"""


def changed(text: str, *, by: str) -> bytes:
    assert text in TEXT
    return TEXT.replace(text, by).encode()


@pytest.mark.spec("KA-9.3k")
def test_a_static_pod_is_named_after_its_node_and_has_the_annotations_of_its_source() -> None:
    pod = read(TEXT.encode(), FILE, NODE, NOW)
    assert pod.key == ("default", "web-n1")
    metadata = pod.document["metadata"]
    assert metadata["annotations"] == {HASH: pod.uid, SOURCE: "file", SEEN: "2025-01-01T00:00:00Z"}
    assert metadata["uid"] == pod.uid and len(pod.uid) == 32
    spec = pod.document["spec"]
    assert (spec["nodeName"], spec["restartPolicy"]) == ("n1", "Always")
    assert {"operator": "Exists", "effect": "NoExecute"} in spec["tolerations"]
    assert "uid" not in pod.mirror["metadata"] and "restartPolicy" not in pod.mirror["spec"]


def test_the_uid_is_that_of_the_content_the_file_and_the_node() -> None:
    uid = read(TEXT.encode(), FILE, NODE, NOW).uid
    assert read(TEXT.encode() + b"\n# a comment\n", FILE, NODE, NOW).uid == uid
    others = {
        read(changed("image: x", by="image: y"), FILE, NODE, NOW).uid,
        read(TEXT.encode(), FILE.with_name("other.yaml"), NODE, NOW).uid,
        read(TEXT.encode(), FILE, NodeName("n2"), NOW).uid,
    }
    assert len(others | {uid}) == 4


def test_fields_that_the_cluster_sets_are_ignored() -> None:
    more = """  name: web
  namespace: prod
  uid: mine
  finalizers: [example.com/hold]
  ownerReferences: [{apiVersion: v1, kind: Node, name: n9, uid: u9}]
  deletionTimestamp: "2025-01-01T00:00:00Z"
  labels: {app: web}
  annotations: {kubernetes.io/config.mirror: "x", mine: "yes"}
"""
    pod = read(changed("  name: web\n", by=more), FILE, NODE, NOW)
    metadata = pod.mirror["metadata"]
    assert metadata.keys() == {"name", "namespace", "labels", "annotations"}
    assert pod.key == ("prod", "web-n1") and metadata["labels"] == {"app": "web"}
    assert MIRROR not in metadata["annotations"] and metadata["annotations"]["mine"] == "yes"
    assert pod.document["status"] == {"phase": "Pending"}


def test_json_is_read_too() -> None:
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [%s]}}'
    assert read((text % '{"name": "m", "image": "x"}').encode(), FILE, NODE, NOW).key == ("default", "a-n1")


@pytest.mark.spec("KA-9.3l")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a pod"),
        (b"[1, 2]", "not a pod"),
        (changed("kind: Pod", by="kind: Deployment"), "expected one object with apiVersion: v1 and kind: Pod"),
        (TEXT.encode() + b"---\n" + TEXT.encode(), "not YAML"),
        (b"a: [", "not YAML"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"[" * 100_000, "not YAML: nested more than"),
        (changed("  name: web\n", by="  namespace: x\n"), "metadata.name is missing"),
        (changed("name: web", by="name: Web_1"), "metadata.name"),
        (changed("  containers:", by="  restartPolicy: Sometimes\n  containers:"), "spec.restartPolicy"),
        (changed("containers:", by="activeDeadlineSeconds: soon\n  containers:"), "activeDeadlineSeconds"),
        (changed("  containers:", by="  serviceAccountName: x\n  containers:"), "may not reference serviceaccounts"),
        (
            changed("  containers:", by="  resourceClaims: [{name: c, resourceClaimName: c}]\n  containers:"),
            "static pods may not use resource claims",
        ),
        (b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
            b"%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n" % (98 + i, 98 + i, *([97 + i] * 8)) for i in range(9)
        ), "more than 100000 values"),
    ],
)  # fmt: skip
def test_an_invalid_manifest_is_refused_with_the_reason(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem.replace("(", r"\(")):
        read(content, FILE, NODE, NOW)
