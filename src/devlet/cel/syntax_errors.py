"""Messages about syntax errors, word for word those of the reference.

The reference does not stop at the first error. It drops a token, inserts a missing one, or skips to a token that an
enclosing rule accepts, and so often reports several errors. This module walks the grammar the same way.
"""

import re
from collections.abc import Collection
from typing import Final

from devlet.cel.grammar import END_OF_RULE, RULES, Node, Step, next_tokens
from devlet.cel.issues import Issue
from devlet.cel.lexer import EOF, ESC_IDENTIFIER, IDENTIFIER, KINDS, NUM_FLOAT, NUM_INT, Token, Tokens
from devlet.cel.recursion import with_room

MAX_ATTEMPTS: Final = 30
MAX_SKIPPED: Final = 256

_STRENGTH: Final = {"*": 2, "/": 2, "%": 2}
_NUMBERS: Final = (NUM_INT, NUM_FLOAT)
_MEMBER: Final = next_tokens(RULES["member"])
_KEYWORD_AFTER_DOT = re.compile("^no viable alternative at input '.(true|false|null)'$", re.DOTALL)


@with_room
def syntax_errors(read: Tokens, deepest: int) -> list[Issue]:
    """Return the issues in the order in which they are found; none if the tokens are an expression."""
    walk = _Walk(read, deepest)
    try:
        walk.rule("start", None)
    except _GiveUp as e:
        if e.issue:
            walk.issues.append(e.issue)
        return walk.issues
    return [*walk.issues, *walk.bad_names]


class _GiveUp(Exception):
    def __init__(self, issue: Issue | None = None) -> None:
        super().__init__()
        self.issue = issue


class _Mismatch(Exception):
    """A token that is not among the expected ones."""


class _NoAlternative(Exception):
    """No rule of the grammar starts with the tokens from `start` to `end`."""

    def __init__(self, start: Token, end: Token) -> None:
        super().__init__()
        self.start = start
        self.end = end


class _Walk:
    def __init__(self, read: Tokens, deepest: int) -> None:
        self.issues: list[Issue] = []
        self.bad_names: list[Issue] = []
        self._read = read
        self._deepest = deepest
        self._at = 0
        self._node = RULES["start"]
        self._callers: list[Node] = []
        self._depth: dict[str, int] = {}
        # While true nothing is reported: it would be a consequence of the same error.
        self._is_recovering = False
        self._attempts = 0
        self._stuck_at = -1
        self._stuck_nodes: set[Node] = set()

    def _token(self, ahead: int = 0) -> Token:
        return self._read.tokens[min(self._at + ahead, len(self._read.tokens) - 1)]

    def _kind(self, ahead: int = 0) -> str:
        return self._token(ahead).kind

    def _consume(self) -> None:
        if self._kind() != EOF:
            self._at += 1

    # The walk

    def rule(self, name: str, caller: Node | None) -> None:
        self._depth[name] = self._depth.get(name, 0) + 1
        if self._depth[name] > self._deepest:
            raise _GiveUp(Issue(f"expression recursion limit exceeded: {self._deepest}"))
        if caller:
            self._callers.append(caller)
        start = self._token().start
        try:
            self._sequence(RULES[name], caller.binding if caller else 0)
        except (_Mismatch, _NoAlternative) as e:
            self._report(e)
            self._recover()
            if name == "name" and self._callers[-2].rule == "member":
                self.bad_names.append(Issue("unsupported ident kind", start))
        if caller:
            self._callers.pop()
            self._node = caller
        self._depth[name] -= 1

    def _sequence(self, node: Node | None, binding: int) -> None:
        while node and node.step is not Step.END:
            self._node = node
            if node.step is Step.TOKEN:
                self._match(node)
                node = node.next
            elif node.step is Step.RULE:
                self.rule(node.rule, node)
                node = node.next
            else:
                self._sync(node)
                node = self._branch(node, binding)

    def _branch(self, node: Node, binding: int) -> Node | None:
        if node.step is Step.CHOICE:
            return node.branches[self._choice(node)]
        if node.step is Step.FIRST_ROUND:
            return node.branches[0]
        return node.branches[0] if self._is_entered(node, binding) else node.next

    def _is_entered(self, node: Node, binding: int) -> bool:
        kind = self._kind()
        match node.decision:
            case "operator":
                return kind in next_tokens(node.branches[0]) and _STRENGTH.get(kind, 1) >= binding
            case "comma":
                after = node.branches[0].next
                return kind == "," and after is not None and self._kind(1) in next_tokens(after)
            case "minus":
                return self._is_another_minus()
            case _:
                return kind in next_tokens(node.branches[0])

    def _is_another_minus(self) -> bool:
        if self._kind() == "-" and self._kind(1) not in _MEMBER:
            raise _NoAlternative(self._token(), self._token(1))
        if self._kind() not in _MEMBER:
            raise _NoAlternative(self._token(), self._token())
        return self._kind() == "-"

    def _choice(self, node: Node) -> int:
        kind = self._kind()
        if kind not in next_tokens(node):
            raise _NoAlternative(self._token(), self._token())
        match node.decision:
            case "unary" if kind == "-":
                return self._choice_of_minus()
            case "member" if kind == ".":
                return self._choice_of_member()
            case "primary" if kind in (".", IDENTIFIER):
                return self._choice_of_name()
            case "literal" if kind == "-":
                if self._kind(1) not in _NUMBERS:
                    raise _NoAlternative(self._token(), self._token(1))
                return 0 if self._kind(1) == NUM_INT else 2
            case _:
                return next(i for i, branch in enumerate(node.branches) if kind in next_tokens(branch))

    def _choice_of_minus(self) -> int:
        following = self._kind(1)
        if following not in _MEMBER:
            raise _NoAlternative(self._token(), self._token(1))
        return 0 if following in _NUMBERS else 2

    def _choice_of_member(self) -> int:
        if self._kind(1) not in ("?", IDENTIFIER, ESC_IDENTIFIER):
            raise _NoAlternative(self._token(), self._token(1))
        return 1 if self._kind(1) == IDENTIFIER and self._kind(2) == "(" else 0

    def _choice_of_name(self) -> int:
        """Choose between a name, a call, and the type of a struct: `a.b.c{`."""
        ahead = 1 if self._kind() == "." else 0
        if self._kind(ahead) != IDENTIFIER:
            raise _NoAlternative(self._token(), self._token(ahead))
        if self._kind(ahead + 1) == "(":
            return 1
        while self._kind(ahead + 1) == "." and self._kind(ahead + 2) == IDENTIFIER:
            ahead += 2
        return 5 if self._kind(ahead + 1) == "{" else 0

    # Errors

    def _match(self, node: Node) -> None:
        if self._kind() in node.tokens:
            self._matched()
            self._consume()
            return
        self._count_attempt()
        if self._drops_one():
            self._consume()
        elif node.next and self._kind() in self._expected(node.next):
            self._say_expected("missing {expected} at {token}")
        else:
            raise _Mismatch

    def _sync(self, node: Node) -> None:
        """Recover before an option, loop or choice, if the error can be repaired there."""
        following = next_tokens(node)
        if self._is_recovering or END_OF_RULE in following or self._kind() in following:
            return
        if node.step is not Step.AGAIN:
            if not self._drops_one():
                raise _Mismatch
            return
        self._say_expected("extraneous input {token} expecting {expected}")
        self._skip_to(self._expected(node) | self._goes_on())

    def _drops_one(self) -> bool:
        if self._kind(1) not in self._expected(self._node):
            return False
        self._say_expected("extraneous input {token} expecting {expected}")
        self._consume()
        self._matched()
        return True

    def _matched(self) -> None:
        self._is_recovering = False
        self._stuck_nodes.clear()
        self._stuck_at = -1

    def _expected(self, node: Node) -> frozenset[str]:
        following = next_tokens(node)
        expected = set(following)
        for caller in reversed(self._callers):
            if END_OF_RULE not in following or caller.next is None:
                break
            following = next_tokens(caller.next)
            expected |= following
        if END_OF_RULE in following:
            expected.add(EOF)
        return frozenset(expected - {END_OF_RULE})

    def _goes_on(self) -> frozenset[str]:
        """Return the tokens with which the enclosing rules may continue."""
        after = (next_tokens(caller.next) for caller in self._callers if caller.next)
        return frozenset().union(*after) - {END_OF_RULE}

    def _report(self, error: _Mismatch | _NoAlternative) -> None:
        if isinstance(error, _Mismatch):
            self._say_expected("mismatched input {token} expecting {expected}")
            return
        text = EOF if error.start.kind == EOF else self._read.text(error.start, error.end)
        message = f"no viable alternative at input {_quoted(text)}"
        self._say(_KEYWORD_AFTER_DOT.sub(r"mismatched input '\1' expecting IDENTIFIER", message), error.end)

    def _say_expected(self, message: str) -> None:
        token = self._token()
        expected = _names(self._expected(self._node))
        self._say(message.format(token=_quoted(token.text or EOF), expected=expected), token)

    def _say(self, message: str, token: Token) -> None:
        if not self._is_recovering:
            self._is_recovering = True
            self.issues.append(Issue(f"Syntax error: {message}", token.start))

    def _recover(self) -> None:
        self._count_attempt()
        skipped = 0
        if self._stuck_at == self._at and self._node in self._stuck_nodes:
            self._consume()
            skipped = 1
        self._stuck_at = self._at
        self._stuck_nodes.add(self._node)
        self._skip_to(self._goes_on(), MAX_SKIPPED - skipped)

    def _skip_to(self, kinds: Collection[str], limit: int | None = None) -> None:
        skipped = 0
        while self._kind() != EOF and self._kind() not in kinds:
            if skipped == limit:
                raise _GiveUp(Issue(f"error recovery token lookahead limit exceeded: {MAX_SKIPPED}"))
            self._consume()
            skipped += 1

    def _count_attempt(self) -> None:
        if self._attempts == MAX_ATTEMPTS:
            message = f"Syntax error: error recovery attempt limit exceeded: {MAX_ATTEMPTS}"
            raise _GiveUp(Issue(message, self._token().start))
        self._attempts += 1


def _names(kinds: Collection[str]) -> str:
    names = [kind if kind.isupper() or kind == EOF else f"'{kind}'" for kind in KINDS if kind in kinds]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"
