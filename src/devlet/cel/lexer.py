"""Split text into tokens. As in the reference, text that cannot be a token is reported and skipped."""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from devlet.cel.issues import Issue

EOF: Final = "<EOF>"
IDENTIFIER: Final = "IDENTIFIER"
ESC_IDENTIFIER: Final = "ESC_IDENTIFIER"
NUM_FLOAT: Final = "NUM_FLOAT"
NUM_INT: Final = "NUM_INT"
NUM_UINT: Final = "NUM_UINT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"

_SYMBOLS: Final = (
    *("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":"),
    *("+", "*", "/", "%", "true", "false", "null"),
)

KINDS: Final = (EOF, *_SYMBOLS, NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER, ESC_IDENTIFIER)
"""Kinds of tokens; a symbol or keyword is its own kind. Messages list them in this order."""


class Token(NamedTuple):
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens. The last one is an EOF with empty text. `broken` are the parts of the source that are not tokens."""

    source: str
    tokens: list[Token]
    issues: list[Issue]
    broken: list[tuple[int, int]]

    def text(self, first: Token, last: Token) -> str:
        """Return the text from one token to another, including the space between them, but without broken parts."""
        pieces = []
        at = first.start
        for start, end in self.broken:
            if at <= start < last.start:
                pieces.append(self.source[at:start])
                at = end
        return "".join((*pieces, self.source[at : last.end]))


_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_QUOTED = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*+"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*+'",
        r'[rR]""".*?"""',
        r"[rR]'''.*?'''",
        r'[rR]"[^"\n\r]*+"',
        r"[rR]'[^'\n\r]*+'",
    )
)

_EXPONENT = r"[eE][+-]?[0-9]++"

# The longest match wins in the reference; the order of the alternatives here has the same effect.
_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<SKIP>[\t \r\n\f]++|//[^\n]*+)",
            rf"(?P<STRING>{_QUOTED})",
            rf"(?P<BYTES>[bB](?:{_QUOTED}))",
            r"(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*+)",
            rf"(?P<NUM_FLOAT>[0-9]++(?:\.[0-9]++(?:{_EXPONENT})?|{_EXPONENT})|\.[0-9]++(?:{_EXPONENT})?)",
            r"(?P<NUM_UINT>(?:0x[0-9a-fA-F]++|[0-9]++)[uU])",
            r"(?P<NUM_INT>0x[0-9a-fA-F]++|[0-9]++)",
            r"(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]++`)",
            r"(?P<SYMBOL>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        )
    ),
    re.DOTALL,
)

# The text that was consumed before it turned out not to be a token: an unfinished string, half an operator, or nothing.
_BROKEN = re.compile(
    rf"""["](?:{_ESCAPE}|[^\\"\n\r])*+(?P<double>\\?)|['](?:{_ESCAPE}|[^\\'\n\r])*+(?P<single>\\?)"""
    r"""|`[A-Za-z0-9_.\-/ ]*+|[&|=]|"""
)
_BROKEN_ESCAPE = re.compile(r"[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?|")
_KEYWORDS = frozenset(("in", "true", "false", "null"))


def tokenize(text: str) -> Tokens:
    tokens: list[Token] = []
    issues: list[Issue] = []
    broken: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            stop = _stop_of_broken(text, at)
            issues.append(Issue(f"Syntax error: token recognition error at: '{text[at : stop + 1]}'", at))
            broken.append((at, stop + 1))
            at = stop + 1
            continue
        if match.lastgroup != "SKIP":
            tokens.append(_token(str(match.lastgroup), match.group(), at))
        at = match.end()
    tokens.append(Token(EOF, "", len(text)))
    return Tokens(text, tokens, issues, broken)


def _token(group: str, text: str, start: int) -> Token:
    is_symbol = group == "SYMBOL" or (group == IDENTIFIER and text in _KEYWORDS)
    return Token(text if is_symbol else group, text, start)


def _stop_of_broken(text: str, start: int) -> int:
    """Return the end of a broken part: the first character that cannot continue any token, which is also skipped."""
    match = _BROKEN.match(text, start)
    assert match is not None
    if match["double"] or match["single"]:
        rest = _BROKEN_ESCAPE.match(text, match.end())
        assert rest is not None
        return rest.end()
    return match.end()
