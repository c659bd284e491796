"""Random documents of every kind, made from the schema table. A few of their values have the wrong type."""

import string
from collections.abc import Callable
from random import Random
from typing import Any

from devlet.objects.documents import Document, copy
from devlet.objects.kinds import Kind
from devlet.objects.schema.messages import Field, Message, message_of

NAMES = ("a", "b", "c")
ODD_STRINGS = ("", " ", "\0", "\u202e", "é" * 300, "x" * 5000, "../..", "-a-", "A", "%00", "1e400", "a/b/c", "\x9b")
ODD_NUMBERS = (0, -1, 1 << 31, 1 << 63, 1 << 64, 10**30, 10**300, -(1 << 63), 1.5, 1e300, -0.0)
_DEPTH = 6


def odd(random: Random) -> Any:
    """A value that few fields expect."""
    return random.choice(
        [
            None,
            True,
            random.choice(ODD_NUMBERS),
            random.choice(ODD_STRINGS),
            [],
            {},
            [None],
            [[]],
            {"": None},
            {"a": {"b": [1, "c", None]}},
            _nested(random.choice((5, 150, 600))),
        ]
    )


def document(random: Random, kind: Kind, api_version: str, specimens: dict[str, Document]) -> Document:
    """A document of the kind: a valid one with a few changes, or one made from the schema."""
    message = message_of(api_version, kind.kind)
    if kind.kind in specimens and (message is None or random.random() < 0.75):
        made: Document = copy(specimens[kind.kind])
    else:
        made = _value_of(random, message, _DEPTH) if message else {"spec": odd(random)}
    made |= {"kind": kind.kind, "apiVersion": api_version}
    metadata = made["metadata"] = made["metadata"] if isinstance(made.get("metadata"), dict) else {}
    for key in ("namespace", "resourceVersion", "uid", "deletionTimestamp", "ownerReferences", "finalizers"):
        if random.random() < 0.9:
            metadata.pop(key, None)
    metadata.setdefault("name", random.choice(NAMES))
    for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
        _mutate(random, made)
    return made


def _mutate(random: Random, made: Any) -> None:
    """Change one random place: to a value of another type, or away, or to a key that is unknown."""
    while isinstance(made, dict | list) and made:
        key: Any = random.choice(list(made)) if isinstance(made, dict) else random.randrange(len(made))
        below = made[key]
        if isinstance(below, dict | list) and below and random.random() < 0.8:
            made = below
            continue
        change = random.random()
        if change < 0.75:
            made[key] = odd(random)
        elif change < 0.85:
            del made[key]
        elif isinstance(made, dict):
            made[random.choice(("unknown", "", "$patch", "$retainKeys", "x-y", "f:spec"))] = odd(random)
        return


def _value_of(random: Random, message: Message, depth: int) -> Document:
    fields = list(message.properties.items())
    wanted = random.sample(fields, min(len(fields), random.choice((1, 2, 3, 6))))
    made = {key: _member(random, field, depth) for key, field in wanted}
    for key, field in fields:
        if key in ("metadata", "spec") or key in message.required:
            made.setdefault(key, _member(random, field, depth))
    return made


def _member(random: Random, field: Field, depth: int) -> Any:
    if depth <= 0:
        return odd(random)
    match field.label:
        case "repeated":
            return [_one(random, field, depth - 1) for _ in range(random.choice((0, 1, 2, 9)))]
        case "map":
            return {random.choice((*NAMES, "example.com/x")): _one(random, field, depth - 1) for _ in range(2)}
    return _one(random, field, depth - 1)


def _one(random: Random, field: Field, depth: int) -> Any:
    if random.random() < 0.01:
        return odd(random)
    if field.is_message:
        return _value_of(random, field.message(), depth)
    return _SCALARS[field.special or field.type](random)


def _text(random: Random) -> str:
    return random.choice(
        (*NAMES, "example.com/x", "v1", "Pod", "Always", "NoSchedule", random.choice(string.printable))
    )


_SCALARS: dict[str, Callable[[Random], Any]] = {
    "string": _text,
    "bool": lambda random: random.random() < 0.5,
    "int32": lambda random: random.choice((0, 1, -1, 80, (1 << 31) - 1)),
    "int64": lambda random: random.choice((0, 1, -1, 600, (1 << 63) - 1)),
    "bytes": lambda random: random.choice(("", "YQ==", "e30=", "!")),
    "quantity": lambda random: random.choice(("1", "100m", "1Gi", "-1", "1e9", "0", 1, 0.5, "1e400", "9" * 50)),
    "intorstring": lambda random: random.choice((1, "50%", "http", "")),
    "time": lambda random: random.choice(("2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "x")),
    "microtime": lambda random: random.choice(("2026-01-01T00:00:00.000001Z", "0001-01-01T00:00:00Z")),
    "rawextension": odd,
    "fieldsv1": lambda random: random.choice(({"f:spec": {}}, {"f:metadata": {"f:labels": {".": {}}}}, odd(random))),
    "items": lambda random: [_text(random)],
}


def _nested(depth: int) -> Any:
    made: Any = 1
    for i in range(depth):
        made = [made] if i % 2 else {"a": made}
    return made
