"""Turn the finished source into a Python function.

It runs without builtins, in a namespace that has only the names used in the source. If the generated code cannot finish
(an error whose text is needed, or values that it does not cover), the expression is evaluated, so text and place of an
error are always those of `evaluate`.
"""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

from devlet.cel.ast import Ident, walk
from devlet.cel.checker import Checked
from devlet.cel.evaluate import evaluate
from devlet.cel.functions import UNBOUNDED
from devlet.cel.generate.code import NO_KEYS, Block, Body, Code, Line, Operand, Source
from devlet.cel.generate.context import Context, NotGenerated
from devlet.cel.generate.walk import write
from devlet.cel.plan import Plan
from devlet.cel.recursion import with_room
from devlet.cel.values import CelError, Value

_FILE: Final = "<cel>"
_ERRORS: Final = (CelError, LookupError)
_BUILTINS: Final = {
    "E": _ERRORS,
    "X": Exception,
    **{f.__name__: f for f in (bool, dict, enumerate, int, isinstance, len, str, type)},
}


class _Answers:
    """Falls back to `evaluate` when generated code cannot finish."""

    def __init__(self, plan: Plan, names: Sequence[str]) -> None:
        self.source = Source("", {}, {})
        self._plan = plan
        self._names = names
        self._missing: dict[tuple[int, str], CelError] = {}

    def value(self, *arguments: Value) -> Value:
        found = self.value_or_error(*arguments)
        if isinstance(found, CelError):
            raise found
        return found

    def value_or_error(self, *arguments: Value) -> Value:
        found = evaluate(self._plan, dict(zip(self._names, arguments, strict=True)), cost_limit=UNBOUNDED)
        return found.value if found.error is None else found.error

    def value_or_raise(self, error: Exception, *arguments: Value) -> Value:
        found = self.error(error, *arguments)
        if isinstance(found, CelError):
            raise CelError(found.message, found.node) from None
        return found

    def error(self, error: Exception, *arguments: Value) -> Value:
        """Return the CelError, or a value if `evaluate` finds no error."""
        traceback, error.__traceback__ = error.__traceback__, None
        if type(error) is KeyError and traceback and (found := self._missing_key(error, traceback)):
            return found
        return self.value_or_error(*arguments)

    def _missing_key(self, error: KeyError, traceback: TracebackType) -> CelError | None:
        """Return the error of the node that failed. The line of the last traceback entry identifies it."""
        while traceback.tb_next:
            traceback = traceback.tb_next
        line, key = traceback.tb_lineno, error.args[0]
        if traceback.tb_frame.f_code.co_filename != _FILE or not (node := self.source.keys.get(line, NO_KEYS).get(key)):
            return None
        # A hundred thousand devices may lack the same key, so the error object is shared.
        return self._missing.setdefault((line, key), CelError(f"no such key: {key}", node))


class Generated:
    """A function of the `variables`, in their order, that raises CelError. `source` is kept for inspection."""

    def __init__(self, variables: tuple[str, ...], source: str, function: Callable[..., Value]) -> None:
        self.variables = variables
        self.source = source
        self.function = function

    def __call__(self, *arguments: Value) -> Value:
        return self.function(*arguments)


@with_room
def generate(checked: Checked, plan: Plan) -> Generated:
    """Return a function of the variables that the expression uses, in the order of the environment."""
    used = {node.name for node in walk(checked.parsed.root) if isinstance(node, Ident)}
    names = tuple(name for name in checked.environment.variables if name in used)
    answers = _Answers(plan, names)
    try:
        source = _function(checked, plan, names, answers)
    except NotGenerated:
        return Generated(names, "", answers.value)
    return Generated(names, source.text, _compiled(source, answers))


@with_room
def generate_filter(checked: Checked, plan: Plan) -> Generated:
    """Return a function that takes many values of the only variable and returns the value of the expression, or its
    CelError, for each."""
    names = tuple(checked.environment.variables)
    if len(names) != 1:
        raise ValueError(f"a filter has one variable, not {len(names)}: {', '.join(names)}")
    answers = _Answers(plan, names)
    try:
        source = _filter(checked, plan, names[0], answers)
    except NotGenerated:
        return Generated(names, "", lambda values: [answers.value_or_error(value) for value in values])
    return Generated(names, source.text, _compiled(source, answers))


def _context(checked: Checked, plan: Plan, names: Sequence[str]) -> Context:
    scope = {name: Operand(f"a{i}", checked.environment.variables[name], simple=True) for i, name in enumerate(names)}
    return Context(checked, plan.constants, Code(), scope)


def _function(checked: Checked, plan: Plan, names: Sequence[str], answers: _Answers) -> Source:
    context = _context(checked, plan, names)
    code, parameters = context.code, [operand.text for operand in context.scope.values()]
    with code.function("run", parameters):
        with code.apart() as lines:
            result = context.value(write(context, checked.parsed.root))
            code.write(f"return {result.text}")
        code.put("try:", lines)
        code.nest("except E as x:", f"return {code.known(answers.value_or_raise)}({', '.join(('x', *parameters))})")
        code.nest("except X:", f"return {code.known(answers.value)}({', '.join(parameters)})")
    return code.finish()


def _filter(checked: Checked, plan: Plan, name: str, answers: _Answers) -> Source:
    context = _context(checked, plan, (name,))
    code = context.code
    with code.function("run", ["values"]):
        with code.apart(2) as lines:
            result = context.value(write(context, checked.parsed.root))
            code.write(f"append({result.text})")
        code.write("results = []")
        code.write("append = results.append")
        handlers = {
            "except E as x:": f"append({code.known(answers.error)}(x, a0))",
            "except X:": f"append({code.known(answers.value_or_error)}(a0))",
        }
        tried: Body = [Block("try:", lines), *(Block(header, [Line(line)]) for header, line in handlers.items())]
        code.put("for a0 in values:", tried)
        code.write("return results")
    return code.finish()


def _compiled(source: Source, answers: _Answers) -> Callable[..., Value]:
    answers.source = source
    namespace = {"__builtins__": {}, **_BUILTINS, **source.namespace}
    if source.is_fragile:
        namespace["E"] = ()
    exec(compile(source.text, _FILE, "exec"), namespace)
    function: Callable[..., Value] = namespace["run"]
    return function
