"""Functions that ask the API server for an authorization decision. They are only declared: selectors have no
authorizer.

No variable has a type that they can be called on. They matter because `x.name("y")` with an unknown `x` compiles and
fails when it is evaluated, and because messages about wrong calls differ for functions that exist.
"""

from collections.abc import Sequence
from typing import Final, NoReturn

from devlet.cel.functions import CallEstimate, Estimator, Function, Library, Overload, Range, SizedNode
from devlet.cel.library.ranges import LIST_COST, STRING_FACTOR, plus, scaled, size_of
from devlet.cel.types import BOOL, STRING, Type, object_type
from devlet.cel.values import CelError, Value

_AUTHORIZER = object_type("kubernetes.authorization.Authorizer")
_PATH = object_type("kubernetes.authorization.PathCheck")
_GROUP = object_type("kubernetes.authorization.GroupCheck")
_RESOURCE = object_type("kubernetes.authorization.ResourceCheck")
_DECISION = object_type("kubernetes.authorization.Decision")

# The cost of a check: so high that an expression can afford two.
_CHECK_COST: Final = 350_000

_STRUCT_COST: Final = 40


def _nobody(*args: Value) -> NoReturn:
    raise CelError("no such overload")


def _fixed(cost: int) -> Estimator:
    return lambda target, args: CallEstimate(Range(cost, cost))


def _selector_estimate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    """Estimate reading the text, and a list and a struct for each requirement, which may be as short as two
    characters."""
    length = size_of(args[0])
    requirements = scaled(scaled(length, 0.5), LIST_COST + _STRUCT_COST)
    return CallEstimate(plus(Range(LIST_COST, LIST_COST), scaled(length, STRING_FACTOR), requirements))


_Signature = tuple[str, tuple[Type, ...], Type]


def _function(name: str, *signatures: _Signature, estimate: Estimator = _fixed(1)) -> Function:
    overloads = [Overload(id, params, result, _nobody, True, estimate) for id, params, result in signatures]
    return Function(name, tuple(overloads))


def _selector(name: str, overload: str) -> Function:
    return _function(name, (overload, (_RESOURCE, STRING), _RESOURCE), estimate=_selector_estimate)


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
            estimate=_fixed(_CHECK_COST),
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
        _selector("fieldSelector", "authorizer_fieldselector"),
        _selector("labelSelector", "authorizer_labelselector"),
    ),
)
