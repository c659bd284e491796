"""Defaults of pods."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.defaults.pod import default_pod
from devlet.objects.documents import Document, copy

NOT_READY, UNREACHABLE = (
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
)


def defaulted(**spec: Any) -> Document:
    pod: Document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    default_pod(pod, None)
    return pod


def container(**fields: Any) -> Document:
    found: Document = defaulted(containers=[{"name": "c", "image": "a:1", **fields}])["spec"]["containers"][0]
    return found


@pytest.mark.spec("KA-7.1")
def test_a_minimal_pod_gets_all_defaults() -> None:
    pod = defaulted(containers=[{"name": "c", "image": "busybox"}])
    assert pod["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "busybox",
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [NOT_READY, UNREACHABLE],
    }
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.spec("KA-7.1")
def test_values_set_by_the_pod_are_kept() -> None:
    said: Document = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "dnsPolicy": "None",
        "schedulerName": "devlet",
        "enableServiceLinks": False,
        "priority": 5,
        "preemptionPolicy": "Never",
        "securityContext": {"runAsUser": 1},
    }
    spec = defaulted(**copy(said))["spec"]
    assert {key: spec[key] for key in said} == said


def test_defaults_are_idempotent_and_do_not_touch_the_old_object() -> None:
    pod = defaulted(containers=[{"name": "c", "resources": {"limits": {"cpu": 1}}}], volumes=[{"name": "v"}])
    again, old = copy(pod), copy(pod)
    default_pod(again, old)
    assert again == pod
    assert old == pod


def test_the_priority_of_a_named_class_is_left_to_admission() -> None:
    spec = defaulted(priorityClassName="high")["spec"]
    assert "priority" not in spec
    assert "preemptionPolicy" not in spec


@pytest.mark.spec("KA-7.1")
@pytest.mark.parametrize("key", ["serviceAccount", "serviceAccountName"])
def test_both_names_of_the_service_account_are_kept_equal(key: str) -> None:
    spec = defaulted(**{key: "robot"})["spec"]
    assert spec["serviceAccount"] == spec["serviceAccountName"] == "robot"
    assert "serviceAccountName" not in defaulted()["spec"]


@pytest.mark.spec("KA-7.1")
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_requests_of_extended_resources_default_to_limits(kind: str) -> None:
    resources = {"limits": {"cpu": "2", "gpu.example.com/gpu": "1"}, "requests": {"cpu": "1"}}
    spec = defaulted(**{kind: [{"name": "c", "resources": resources}]})["spec"]
    assert spec[kind][0]["resources"]["requests"] == {"cpu": "1", "gpu.example.com/gpu": "1"}


@pytest.mark.spec("KA-7.1")
def test_ephemeral_containers_get_defaults_but_no_requests() -> None:
    found = defaulted(ephemeralContainers=[{"name": "c", "resources": {"limits": {"cpu": "1"}}}])
    ephemeral = found["spec"]["ephemeralContainers"][0]
    assert ephemeral["terminationMessagePolicy"] == "File"
    assert ephemeral["resources"] == {"limits": {"cpu": "1"}}


@pytest.mark.spec("KA-7.1")
@pytest.mark.parametrize("kind", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_probes_get_times_thresholds_and_a_target(kind: str) -> None:
    times = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert container(**{kind: {"httpGet": {"port": 80}}})[kind] == times | {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}
    }
    assert container(**{kind: {"grpc": {"port": 80}, "periodSeconds": 2}})[kind] == times | {
        "grpc": {"port": 80, "service": ""},
        "periodSeconds": 2,
    }


@pytest.mark.spec("KA-7.1")
def test_hooks_ports_and_environment_are_completed() -> None:
    found = container(
        lifecycle={"preStop": {"httpGet": {"port": 80, "scheme": "HTTPS"}}},
        ports=[{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
        env=[
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "value": "b"},
            {"name": "C", "valueFrom": {"fileKeyRef": {"key": "k"}}},
        ],
    )
    assert found["lifecycle"] == {"preStop": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTPS"}}}
    assert found["ports"] == [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "UDP"}]
    assert found["env"][0]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}
    assert found["env"][1] == {"name": "B", "value": "b"}
    assert found["env"][2]["valueFrom"] == {"fileKeyRef": {"key": "k", "optional": False}}


@pytest.mark.spec("KA-7.1")
def test_on_the_host_network_container_ports_are_host_ports() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}]
    spec = defaulted(hostNetwork=True, containers=[{"name": "c", "ports": ports}])["spec"]
    assert [port["hostPort"] for port in spec["containers"][0]["ports"]] == [80, 82]
    assert "hostPort" not in container(ports=[{"containerPort": 80}])["ports"][0]


@pytest.mark.spec("KA-7.1")
@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        (None, [NOT_READY, UNREACHABLE]),
        ([{"operator": "Exists"}], []),
        ([{"key": NOT_READY["key"], "operator": "Exists"}], [UNREACHABLE]),
        ([{"key": UNREACHABLE["key"], "effect": "NoExecute"}], [NOT_READY]),
        ([{"key": NOT_READY["key"], "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"key": "other"}], [NOT_READY, UNREACHABLE]),
    ],
)
def test_lost_nodes_are_tolerated_for_a_while_unless_the_pod_says_so_itself(
    tolerations: Any, added: list[Document]
) -> None:
    assert defaulted(tolerations=tolerations)["spec"]["tolerations"] == [*(tolerations or []), *added]


@pytest.mark.spec("KA-7.1")
def test_the_quality_of_service_class_is_computed_once() -> None:
    pod: Document = {"spec": {"containers": [{"resources": {"limits": {"cpu": "1"}}}]}, "status": {"phase": "Running"}}
    default_pod(pod, {"status": {"qosClass": "BestEffort"}})
    assert pod["status"] == {"phase": "Running", "qosClass": "BestEffort"}


def test_an_update_does_not_make_a_pod_pending_again() -> None:
    pod: Document = {"spec": {}, "status": {}}
    default_pod(pod, {"status": {"qosClass": "Burstable"}})
    assert "phase" not in pod["status"]


@pytest.mark.parametrize(
    "spec",
    [
        7,
        {"containers": "x", "tolerations": "x", "volumes": {}},
        {"containers": [1, None, {"ports": 1, "env": [1], "livenessProbe": [], "resources": "x"}]},
        {"containers": [{"resources": {"limits": {"cpu": 1}, "requests": []}}], "tolerations": [1]},
    ],
)
def test_values_of_the_wrong_shape_are_left_to_validation(spec: Any) -> None:
    pod = {"spec": spec}
    default_pod(pod, None)
    assert pod["spec"] is spec


containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ab")},
        optional={"image": st.sampled_from(["x", "x:1"]), "resources": st.just({"limits": {"cpu": "1"}})},
    ),
    max_size=2,
)
specs: st.SearchStrategy[Document] = st.fixed_dictionaries(
    {"containers": containers},
    optional={"hostNetwork": st.booleans(), "serviceAccount": st.just("s"), "priorityClassName": st.just("high")},
)


@given(specs, st.sampled_from([{}, {"phase": "Running"}, {"qosClass": "Guaranteed"}]))
def test_a_spec_that_did_not_change_has_its_defaults(spec: Document, status: Document) -> None:
    old = defaulted(**spec)
    new = {**copy(old), "status": dict(status)}
    everything = copy(new)
    default_pod(new, old)
    default_pod(everything, {**old, "spec": {}})  # which is another one
    assert new == everything


def test_a_spec_that_changed_gets_its_defaults() -> None:
    old = defaulted(containers=[{"name": "c", "image": "a:1"}])
    new = copy(old)
    new["spec"]["containers"][0]["image"] = "a:2"
    del new["spec"]["dnsPolicy"]
    default_pod(new, old)
    assert new["spec"]["dnsPolicy"] == "ClusterFirst"
