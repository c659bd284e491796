"""Whether a container that has ended is restarted.

The first of its rules that matches the exit code decides, then its own restart policy, then the pod's. Restart is the
only known action; rules with any other action defer to the policies.
"""

from devlet.objects.types.container import Container, ContainerRestartRule
from devlet.objects.types.pod import Pod

__all__ = ["is_restarted"]


def is_restarted(pod: Pod, container: Container, code: int) -> bool:
    if container.restart_policy and _action(container, code) == "Restart":
        return True
    match container.restart_policy or pod.spec.restart_policy:
        case "Never":
            return False
        case "OnFailure":
            return code != 0
    return True


def _action(container: Container, code: int) -> str:
    return next((rule.action for rule in container.restart_policy_rules if _speaks_of(rule, code)), "")


def _speaks_of(rule: ContainerRestartRule, code: int) -> bool:
    if rule.exit_codes is None:
        return False
    match rule.exit_codes.operator:
        case "In":
            return code in rule.exit_codes.values
        case "NotIn":
            return code not in rule.exit_codes.values
    return False
