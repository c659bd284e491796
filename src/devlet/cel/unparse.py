"""Format a tree as text: macros as they were written, and no unnecessary parentheses.

The text of a node that is part of a macro's expansion contains names that cannot be written, such as `@result`.
"""

from typing import Final

from devlet.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Parsed,
    Select,
    StructLiteral,
)
from devlet.cel.recursion import with_room
from devlet.cel.values import Constant, Uint

_TERNARY: Final = 8
_UNARY: Final = 2
_MEMBER: Final = 1
_BINARY: Final = {
    **{"_||_": ("||", 7), "_&&_": ("&&", 6), "@in": ("in", 5)},
    **{f"_{op}_": (op, 5) for op in ("<", "<=", ">=", ">", "==", "!=")},
    **{f"_{op}_": (op, 4) for op in "+-"},
    **{f"_{op}_": (op, 3) for op in "*/%"},
}
_CHAINS: Final = ("_&&_", "_||_")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@with_room
def expression_text(node: Expr, parsed: Parsed) -> str:
    """Return text that parses to the node."""
    return _Printer(parsed).text(node)


class _Printer:
    def __init__(self, parsed: Parsed) -> None:
        self._macro_calls = parsed.macro_calls

    def text(self, node: Expr) -> str:
        node = self._macro_calls.get(node.id, node)
        match node:
            case Literal():
                return _constant(node.value)
            case Ident():
                return node.name
            case Select():
                text = f"{self._within(node.operand, _MEMBER)}.{node.field}"
                return f"has({text})" if node.is_test else text
            case Call():
                return self._call(node)
            case ListLiteral():
                marks = ("?" if i in node.optionals else "" for i in range(len(node.elements)))
                return f"[{', '.join(mark + self.text(e) for mark, e in zip(marks, node.elements, strict=True))}]"
            case MapLiteral():
                entries = (f"{_mark(e.optional)}{self.text(e.key)}: {self.text(e.value)}" for e in node.entries)
                return f"{{{', '.join(entries)}}}"
            case StructLiteral():
                fields = (f"{_mark(f.optional)}{f.name}: {self.text(f.value)}" for f in node.fields)
                return f"{node.type_name}{{{', '.join(fields)}}}"
            case Comprehension():
                parts = (node.init, node.condition, node.step, node.result)
                texts = [self.text(node.range), node.accumulator, *map(self.text, parts)]
                return f"cel.@fold({', '.join(texts)})"

    def _within(self, node: Expr, strongest: int) -> str:
        """Add parentheses if the operator binds more weakly than its place allows."""
        text = self.text(node)
        return f"({text})" if self._strength(node) > strongest else text

    def _strength(self, node: Expr) -> int:
        node = self._macro_calls.get(node.id, node)
        match node:
            case Call(function="_?_:_"):
                return _TERNARY
            case Call(function="!_" | "-_"):
                return _UNARY
            case Call(function=function) if function in _BINARY:
                return _BINARY[function][1]
            case _:
                return _MEMBER

    def _call(self, node: Call) -> str:
        match node:
            case Call(function="_?_:_", args=(condition, then, otherwise)):
                head = f"{self._within(condition, _TERNARY - 1)} ? {self._within(then, _TERNARY - 1)}"
                return f"{head} : {self.text(otherwise)}"
            case Call(function="_[_]" | "_[?_]" as function, args=(operand, index)):
                mark = "?" if "?" in function else ""
                return f"{self._within(operand, _MEMBER)}[{mark}{self.text(index)}]"
            case Call(function="_?._", args=(operand, Literal(value=str() as field))):
                return f"{self._within(operand, _MEMBER)}.?{field}"
            case Call(function="!_" | "-_" as function, args=(operand,)):
                return self._unary(function[0], operand)
            case Call(function=function, args=(left, right)) if function in _BINARY:
                return self._binary(node, left, right)
            case _:
                target = f"{self._within(node.target, _MEMBER)}." if node.target is not None else ""
                return f"{target}{node.function}({', '.join(map(self.text, node.args))})"

    def _unary(self, op: str, operand: Expr) -> str:
        text = self._within(operand, _MEMBER)
        # `-1` is a literal and `--x` is x.
        is_read_otherwise = text.startswith(op) or (op == "-" and (text[0].isdigit() or text[0] == "."))
        return f"{op}({text})" if is_read_otherwise else f"{op}{text}"

    def _binary(self, node: Call, left: Expr, right: Expr) -> str:
        op, strength = _BINARY[node.function]
        if node.function in _CHAINS:
            if self._is_balanced(node):
                return f" {op} ".join(self._within(term, strength - 1) for term in self._terms(node, node.function))
            return f"{self._within(left, strength - 1)} {op} {self._within(right, strength - 1)}"
        return f"{self._within(left, strength)} {op} {self._within(right, strength - 1)}"

    def _terms(self, node: Expr, function: str) -> list[Expr]:
        if isinstance(node, Call) and node.function == function and node.id not in self._macro_calls:
            return [term for arg in node.args for term in self._terms(arg, function)]
        return [node]

    def _is_balanced(self, node: Call) -> bool:
        """Return whether the parser makes this tree of a chain without parentheses."""
        left, right = (len(self._terms(arg, node.function)) for arg in node.args)
        if left != (left + right - 1) // 2 + 1:
            return False
        inner = (arg for arg in node.args if isinstance(arg, Call) and len(self._terms(arg, node.function)) > 1)
        return all(self._is_balanced(arg) for arg in inner)


def _mark(optional: bool) -> str:
    return "?" if optional else ""


def _constant(value: Constant) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Uint():
            return f"{int(value)}u"
        case str():
            return f'"{"".join(map(_character, value))}"'
        case bytes():
            return f'b"{"".join(map(_byte, value))}"'
        case _:
            return repr(value)


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _byte(byte: int) -> str:
    character = chr(byte)
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if 32 <= byte < 127 else f"\\x{byte:02x}"
