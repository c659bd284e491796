"""Whatever a user writes, the source consists of our own words, and nothing but the expression runs."""

import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import pytest

from devlet.cel.generate import generate, generate_filter
from devlet.cel.issues import CompileError

WORDS: Final = frozenset(
    """def run values results append for in try except as return if else not and or is None True False raise break
    continue pass E X x type len str int bool dict isinstance enumerate""".split()
)
ATTRIBUTES: Final = frozenset(
    """driver attributes capacity allow_multiple_allocations append get items pop startswith endswith nano precedence
    value has_value""".split()
)
NUMBERED: Final = re.compile(r"[aektvf][0-9]+").fullmatch
NUMBERS: Final = frozenset(("0", "1", "9223372036854775807", "9223372036854775808"))
LAYOUT: Final = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)

PIECES: Final = [
    *"__import__ __builtins__ __class__ class lambda None True import eval exec os self def await and or in".split(),
    *"é ⅷ 名 k1 t1 v1 a0 E X values append __missing__ device 0x 1e9 # ; : { } ( ) [ ] . ? ! - // @ ` %s {0}".split(),
    *(
        "'",
        '"',
        '"""',
        "''",
        "rb'",
        "f'{x}'",
        "\\",
        "\\n",
        "\n",
        "\r",
        "\t",
        " ",
        "\\x00",
        "\\u2028",
        "\u2028",
        "\\101",
    ),
]
NAMES: Final = "__import__ __class__ class_ lambda None eval self k1 t1 E x def".split()
TEMPLATES: Final = [
    "device.driver == TEXT",
    "device.attributes[TEXT][TEXT] == TEXT",
    "device.attributes.NAME.NAME == 1",
    "has(device.attributes.NAME.NAME)",
    "device.attributes.d.?NAME.orValue(TEXT)",
    "cel.bind(NAME, TEXT, NAME == TEXT)",
    "cel.bind(NAME, TEXT, [TEXT].all(NAME, NAME != TEXT))",
    "[TEXT, TEXT].all(NAME, NAME != TEXT)",
    "[TEXT].map(NAME, NAME + TEXT).exists(NAME, NAME in [TEXT])",
    "{TEXT: TEXT}.NAME == 'x'",
    "{TEXT: 1}.transformMap(NAME, y, y)",
    "device.driver.matches(TEXT)",
    "TEXT.format([device.driver])",
    "quantity(TEXT).isLessThan(quantity('1'))",
    "device.NAME",
    "NAME(TEXT)",
    "TEXT.NAME(TEXT)",
    "RAW",
    "device.driver RAW 'x'",
]


def hostile(random: Random) -> str:
    """An expression with strange texts, strange names and things that are neither."""
    return re.sub("TEXT|NAME|RAW", lambda hole: _filled(random, hole[0]), random.choice(TEMPLATES))


def _filled(random: Random, hole: str) -> str:
    raw = "".join(random.choice(PIECES) for _ in range(random.randint(1, 5)))
    if hole == "NAME":
        return random.choice([*NAMES, raw])
    if hole == "RAW":
        return raw
    quote = random.choice(["'", '"', "r'", 'b"', "'''"])
    inner = raw if random.random() < 0.4 else repr(raw)[1:-1]
    return f"{quote}{inner}{quote.lstrip('rb')}"


def unknown_tokens(source: str) -> list[str]:
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_known = (
            token.type in LAYOUT
            or (token.type == tokenize.OP and token.string.isascii())
            or (token.type == tokenize.NUMBER and token.string in NUMBERS)
            or (token.type == tokenize.NAME and (token.string in WORDS | ATTRIBUTES or bool(NUMBERED(token.string))))
        )
        if not is_known:
            found.append(token.string)
    return found


@contextmanager
def watched() -> Iterator[list[str]]:
    """Names of Python's dangerous functions that are called meanwhile."""
    called: list[str] = []
    before = {name: getattr(builtins, name) for name in ("eval", "exec", "compile", "open", "input", "__import__")}

    def watch(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            called.append(name)
            return before[name](*arguments, **options)

        return call

    for name in before:
        setattr(builtins, name, watch(name))
    try:
        yield called
    finally:
        for name, function in before.items():
            setattr(builtins, name, function)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 6))])
def test_hostile_expressions_put_no_word_of_theirs_into_the_source(bench: Any, part: int) -> None:
    compiled = 0
    for seed in range(part * 1000, part * 1000 + 1000):
        try:
            checked, planned = bench.compiled(hostile(Random(seed)))
        except CompileError:
            continue
        compiled += 1
        function, one = generate_filter(checked, planned), generate(checked, planned)
        assert unknown_tokens(function.source) == [] == unknown_tokens(one.source)
        with watched() as called:
            function(bench.devices)
        assert called == []
    assert compiled > 100


ALL_NAMES: Final = [
    *keyword.kwlist,
    *keyword.softkwlist,
    *dir(builtins),
    "__builtins__",
    *"k1 t2 a0 v3 E X run".split(),
]


@pytest.mark.parametrize("name", ALL_NAMES)
def test_any_name_may_be_a_variable_or_a_key(bench: Any, name: str) -> None:
    for text in (
        f"cel.bind({name}, device.driver, {name} == 'x')",
        f"[1, 2].exists({name}, {name} == 2)",
        f"has(device.attributes.d.{name})",
        f"device.attributes.d[?'{name}'].orValue('{name}') == '{name}'",
    ):
        try:
            bench.compiled(text)
        except CompileError:
            continue
        assert unknown_tokens(bench.source(text)) == []
        bench.check(text)


def test_generated_code_has_no_builtins(bench: Any) -> None:
    assert bench.filter("device.driver == 'x'").function.__globals__["__builtins__"] == {}


def test_the_check_of_tokens_finds_strange_ones() -> None:
    assert unknown_tokens("t1 = __import__('os')\n") == ["__import__", "'os'"]


def test_the_watch_sees_a_call() -> None:
    with watched() as called:
        assert eval("1") == 1
    assert called == ["eval"]
