from collections.abc import Sequence
from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import container
from devlet.objects.validation.field_errors import duplicate, invalid, not_found, not_supported, required, too_many

POD = container.Surroundings(volumes=frozenset(["v"]), claims=frozenset(["claim"]))


def check(**changes: Any) -> list[Cause]:
    return list(container.check({"name": "c", "image": "busybox", **changes}, "c", POD))


def port(**changes: Any) -> Document:
    return {"containerPort": 80, "protocol": "TCP", **changes}


def rule(action: str = "Restart", operator: str = "In", values: Sequence[int] = (1,)) -> Document:
    return {"action": action, "exitCodes": {"operator": operator, "values": values}}


def test_a_full_container_is_accepted() -> None:
    causes = check(
        imagePullPolicy="Never",
        ports=[port(name="http"), port(name="dns-1", protocol="UDP", hostPort=53)],
        env=[{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"fieldRef": {}}}],
        volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
        resources={"limits": {"cpu": "1"}, "claims": [{"name": "claim"}]},
        restartPolicy="Never",
        restartPolicyRules=[rule(), rule("RestartAllContainers", "NotIn", [0])],
    )
    assert causes == []


RULED = {"restartPolicy": "Never"}
RANGE = "must be between 1 and 65535, inclusive"


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"name": ""}, required("c.name")),
        ({"name": "A"}, invalid("c.name", "A", names.dns_label("A")[0])),
        ({"image": ""}, required("c.image")),
        ({"image": " x"}, invalid("c.image", " x", "must not have leading or trailing whitespace")),
        (
            {"imagePullPolicy": "Often"},
            not_supported("c.imagePullPolicy", "Often", ("Always", "IfNotPresent", "Never")),
        ),
        ({"ports": [{"protocol": "TCP"}]}, required("c.ports[0].containerPort")),
        ({"ports": [port(containerPort=65536)]}, invalid("c.ports[0].containerPort", 65536, RANGE)),
        ({"ports": [port(hostPort=-1)]}, invalid("c.ports[0].hostPort", -1, RANGE)),
        ({"ports": [port(protocol="IP")]}, not_supported("c.ports[0].protocol", "IP", ("SCTP", "TCP", "UDP"))),
        ({"ports": [port(protocol="")]}, required("c.ports[0].protocol")),
        ({"ports": [port(name="a"), port(name="a")]}, duplicate("c.ports[1].name", "a")),
        ({"ports": [port(name="1")]}, invalid("c.ports[0].name", "1", "must contain at least one letter (a-z)")),
        (
            {"ports": [port(name="a" * 16)]},
            invalid("c.ports[0].name", "a" * 16, "must be no more than 15 characters"),
        ),
        ({"env": [{"value": "x"}]}, required("c.env[0].name")),
        ({"env": [{"name": "a=b"}]}, invalid("c.env[0].name", "a=b", names.env_var_name("a=b")[0])),
        (
            {"env": [{"name": "a", "value": "x", "valueFrom": {"fieldRef": {}}}]},
            invalid("c.env[0].valueFrom", "", "may not be specified when `value` is not empty"),
        ),
        ({"volumeMounts": [{"name": "w", "mountPath": "/"}]}, not_found("c.volumeMounts[0].name", "w")),
        ({"volumeMounts": [{"mountPath": "/"}]}, required("c.volumeMounts[0].name")),
        ({"volumeMounts": [{"name": "v"}]}, required("c.volumeMounts[0].mountPath")),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}] * 2},
            invalid("c.volumeMounts[1].mountPath", "/a", "must be unique"),
        ),
        (
            {"restartPolicy": "Often"},
            not_supported("c.restartPolicy", "Often", ("Always", "Never", "OnFailure")),
        ),
        (
            {"restartPolicyRules": [rule()]},
            required("c.restartPolicy", "must specify restartPolicy when restart rules are used"),
        ),
        ({**RULED, "restartPolicyRules": [rule()] * 21}, too_many("c.restartPolicyRules", 21, 20)),
        (
            {**RULED, "restartPolicyRules": [rule(action="Stop")]},
            not_supported("c.restartPolicyRules[0].action", "Stop", ("Restart", "RestartAllContainers")),
        ),
        (
            {**RULED, "restartPolicyRules": [{"action": "Restart"}]},
            required("c.restartPolicyRules[0].exitCodes", "must be specified"),
        ),
        (
            {**RULED, "restartPolicyRules": [rule(operator="Equals")]},
            not_supported("c.restartPolicyRules[0].exitCodes.operator", "Equals", ("In", "NotIn")),
        ),
        (
            {**RULED, "restartPolicyRules": [rule(values=[*range(256)])]},
            too_many("c.restartPolicyRules[0].exitCodes.values", 256, 255),
        ),
    ],
)
def test_a_bad_container_is_refused(changes: Document, cause: Cause) -> None:
    assert check(**changes) == [cause]
