"""Rules for one container of a pod."""

import re
from dataclasses import dataclass

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import container_resources
from devlet.objects.validation.field_errors import (
    Causes,
    duplicate,
    invalid,
    name_errors,
    not_found,
    not_supported,
    required,
    required_name,
    too_many,
)

PORT_MAX = 65535
PORT_NAME_MAX = 15
RESTART_RULES_MAX = 20
EXIT_CODES_MAX = 255

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_EXIT_CODE_OPERATORS = ("In", "NotIn")
_port_name = re.compile("[a-z0-9-]*").fullmatch


@dataclass(frozen=True)
class Surroundings:
    """The names that a container may refer to: the pod's volumes and claims."""

    volumes: frozenset[str]
    claims: frozenset[str]


def check(container: Document, path: str, surroundings: Surroundings) -> Causes:
    yield from required_name(f"{path}.name", container.get("name", ""), names.dns_label)
    image = container.get("image", "")
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    policy = container.get("imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        yield not_supported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    if ports := container.get("ports"):
        yield from _check_ports(ports, f"{path}.ports")
    for i, variable in enumerate(container.get("env") or ()):
        yield from _check_variable(variable, f"{path}.env[{i}]")
    if mounts := container.get("volumeMounts"):
        yield from _check_mounts(mounts, f"{path}.volumeMounts", surroundings.volumes)
    if resources := container.get("resources"):
        yield from container_resources.check(resources, f"{path}.resources", surroundings.claims)
    yield from _check_restarts(container, path)


def _check_restarts(container: Document, path: str) -> Causes:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if rules:
            yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
        return
    if policy not in _RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > RESTART_RULES_MAX:
        yield too_many(f"{path}.restartPolicyRules", len(rules), RESTART_RULES_MAX)
    for i, rule in enumerate(rules):
        yield from _check_restart_rule(rule, f"{path}.restartPolicyRules[{i}]")


def _check_restart_rule(rule: Document, path: str) -> Causes:
    if rule.get("action", "") not in _RESTART_ACTIONS:
        yield not_supported(f"{path}.action", rule.get("action", ""), _RESTART_ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        yield required(f"{path}.exitCodes", "must be specified")
        return
    if codes.get("operator", "") not in _EXIT_CODE_OPERATORS:
        yield not_supported(f"{path}.exitCodes.operator", codes.get("operator", ""), _EXIT_CODE_OPERATORS)
    if len(values := codes.get("values") or ()) > EXIT_CODES_MAX:
        yield too_many(f"{path}.exitCodes.values", len(values), EXIT_CODES_MAX)


def _check_ports(ports: list[Document], path: str) -> Causes:
    seen = set()
    for i, port in enumerate(ports):
        item = f"{path}[{i}]"
        if name := port.get("name"):
            yield from name_errors(f"{item}.name", name, _check_port_name)
            if name in seen:
                yield duplicate(f"{item}.name", name)
            seen.add(name)
        if not port.get("containerPort"):
            yield required(f"{item}.containerPort")
        for member in ("containerPort", "hostPort"):
            if (number := port.get(member)) and not 1 <= number <= PORT_MAX:
                yield invalid(f"{item}.{member}", number, f"must be between 1 and {PORT_MAX}, inclusive")
        if not port.get("protocol"):
            yield required(f"{item}.protocol")
        elif port["protocol"] not in _PROTOCOLS:
            yield not_supported(f"{item}.protocol", port["protocol"], _PROTOCOLS)


def _check_port_name(name: str) -> names.Errors:
    errors = []
    if len(name) > PORT_NAME_MAX:
        errors.append(f"must be no more than {PORT_NAME_MAX} characters")
    if not _port_name(name):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in name):
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return tuple(errors)


def _check_variable(variable: Document, path: str) -> Causes:
    yield from required_name(f"{path}.name", variable.get("name", ""), names.env_var_name)
    if variable.get("value") and variable.get("valueFrom"):
        yield invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")


def _check_mounts(mounts: list[Document], path: str, volumes: frozenset[str]) -> Causes:
    seen = set()
    for i, mount in enumerate(mounts):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{path}[{i}].name")
        elif name not in volumes:
            yield not_found(f"{path}[{i}].name", name)
        if not target:
            yield required(f"{path}[{i}].mountPath")
        elif target in seen:
            yield invalid(f"{path}[{i}].mountPath", target, "must be unique")
        seen.add(target)
