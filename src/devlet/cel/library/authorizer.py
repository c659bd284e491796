"""Functions that ask the API server whether somebody may do something. They have names and types, but nobody to ask.

No variable has a type that they can be called on. They matter because `x.name("y")` with an unknown `x` compiles and
fails when it is evaluated, and because messages about wrong calls differ for functions that exist.
"""

from typing import Final, NoReturn

from devlet.cel.functions import CallEstimate, Function, Library, Overload, Range
from devlet.cel.types import BOOL, STRING, Type, object_type
from devlet.cel.values import CelError, Value

_AUTHORIZER = object_type("kubernetes.authorization.Authorizer")
_PATH = object_type("kubernetes.authorization.PathCheck")
_GROUP = object_type("kubernetes.authorization.GroupCheck")
_RESOURCE = object_type("kubernetes.authorization.ResourceCheck")
_DECISION = object_type("kubernetes.authorization.Decision")

_CHECK_COST: Final = 350_000


def _nobody(*args: Value) -> NoReturn:
    raise CelError("no such overload")


def _check_estimate(target: object, args: object) -> CallEstimate:
    return CallEstimate(Range(_CHECK_COST, _CHECK_COST))


def _one(target: object, args: object) -> CallEstimate:
    return CallEstimate(Range(1, 1))


def _function(name: str, *signatures: tuple[str, tuple[Type, ...], Type]) -> Function:
    estimate = _check_estimate if name == "check" else _one
    overloads = [Overload(id, params, result, _nobody, True, estimate) for id, params, result in signatures]
    return Function(name, tuple(overloads))


LIBRARY: Final = Library(
    "kubernetes.authz",
    (
        _function("path", ("authorizer_path", (_AUTHORIZER, STRING), _PATH)),
        _function("group", ("authorizer_group", (_AUTHORIZER, STRING), _GROUP)),
        _function("serviceAccount", ("authorizer_serviceaccount", (_AUTHORIZER, STRING, STRING), _AUTHORIZER)),
        _function("resource", ("groupcheck_resource", (_GROUP, STRING), _RESOURCE)),
        _function("subresource", ("resourcecheck_subresource", (_RESOURCE, STRING), _RESOURCE)),
        _function("namespace", ("resourcecheck_namespace", (_RESOURCE, STRING), _RESOURCE)),
        _function("name", ("resourcecheck_name", (_RESOURCE, STRING), _RESOURCE)),
        _function(
            "check",
            ("pathcheck_check", (_PATH, STRING), _DECISION),
            ("resourcecheck_check", (_RESOURCE, STRING), _DECISION),
        ),
        _function("errored", ("decision_errored", (_DECISION,), BOOL)),
        _function("error", ("decision_error", (_DECISION,), STRING)),
        _function("allowed", ("decision_allowed", (_DECISION,), BOOL)),
        _function("reason", ("decision_reason", (_DECISION,), STRING)),
    ),
)

SELECTORS: Final = Library(
    "kubernetes.authzSelectors",
    (
        _function("fieldSelector", ("authorizer_fieldselector", (_RESOURCE, STRING), _RESOURCE)),
        _function("labelSelector", ("authorizer_labelselector", (_RESOURCE, STRING), _RESOURCE)),
    ),
)
