import io
import json
import logging
import os
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.kit.facts import JsonFormatter, TextFormatter, bound, configure, facts

_LINE = re.compile(r'I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ claims\.py:12\] "claim prepared"')


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("devlet")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def record(message: str = "claim prepared", level: int = logging.INFO, **values: Any) -> logging.LogRecord:
    made = logging.LogRecord("devlet.node", level, "/x/claims.py", 12, message, (), None)
    made.__dict__.update(facts(**values))
    return made


def test_a_text_line_has_the_shape_of_klog() -> None:
    line = TextFormatter().format(record(claim="ns/c", devices=2, took=0.03))
    assert _LINE.match(line)
    assert line.endswith('] "claim prepared" claim="ns/c" devices=2 took=0.03')
    assert f" {os.getpid():7d} " in line


@pytest.mark.parametrize(
    ("level", "letter"),
    [(logging.DEBUG, "I"), (logging.INFO, "I"), (logging.WARNING, "W"), (logging.ERROR, "E"), (logging.CRITICAL, "F")],
)
def test_the_first_letter_is_the_level(level: int, letter: str) -> None:
    assert TextFormatter().format(record(level=level))[0] == letter


def test_values_are_written_by_their_type() -> None:
    line = TextFormatter().format(record(ok=True, none=None, pool=["a", 1], err=ValueError('bad "x"\n\x1b[1m')))
    assert line.endswith(r'"claim prepared" ok=true pool=["a", 1] err="bad \"x\"\n\u001b[1m"')


@given(st.text(max_size=200))
def test_any_value_stays_on_one_line_and_can_be_split_off_by_a_shell(value: str) -> None:
    line = TextFormatter().format(record(value=value, last=1))
    assert line.isprintable()
    assert shlex.split(line.replace("`", ""))[-1] == "last=1"


def test_a_very_long_value_is_cut() -> None:
    assert len(TextFormatter().format(record(value="x" * 1_000_000))) < 5_000


def test_a_json_line_has_the_agreed_keys() -> None:
    line = json.loads(JsonFormatter().format(record(claim="ns/c", took=0.03, err=ValueError("no"))))
    assert line.pop("ts") > 1_600_000_000
    assert line == {
        "level": "info",
        "caller": "claims.py:12",
        "msg": "claim prepared",
        "claim": "ns/c",
        "took": 0.03,
        "err": "no",
    }


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=50) | st.integers() | st.binary(max_size=5)))
def test_json_lines_always_parse_and_facts_never_replace_the_message(values: dict[str, Any]) -> None:
    made = record()
    made.__dict__["facts"] = values
    text = JsonFormatter().format(made)
    assert "\n" not in text
    assert json.loads(text)["msg"] == "claim prepared"


def test_an_exception_is_a_fact_and_a_traceback() -> None:
    try:
        raise ValueError("no disk")
    except ValueError as e:
        made = record()
        made.exc_info = (ValueError, e, e.__traceback__)
    text = TextFormatter().format(made)
    assert 'err="no disk"' in text.splitlines()[0]
    assert text.splitlines()[-1] == "ValueError: no disk"
    assert json.loads(JsonFormatter().format(made))["stacktrace"].endswith("ValueError: no disk")


def test_bound_facts_travel_with_the_block_and_the_line_wins() -> None:
    with bound(driver="gpu.example.com", claim="a"), bound(pod="ns/p"):
        inside = TextFormatter().format(record(claim="b"))
    assert inside.endswith('driver="gpu.example.com" claim="b" pod="ns/p"')
    assert TextFormatter().format(record()).endswith('"claim prepared"')


@pytest.mark.parametrize(
    ("verbosity", "expected"), [(0, ["info"]), (1, ["info", "step"]), (2, ["info", "step", "library"])]
)
def test_verbosity_adds_steps_and_then_libraries(verbosity: int, expected: list[str]) -> None:
    stream = io.StringIO()
    configure("json", verbosity, stream)
    logging.getLogger("devlet.x").info("info")
    logging.getLogger("devlet.x").debug("step")
    logging.getLogger("elsewhere").debug("library")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == expected
