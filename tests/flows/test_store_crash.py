"""The embedded cluster is killed with SIGKILL at random points while 64 writers are at work."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

WRITERS = 64
ROUNDS = int(os.environ.get("DEVLET_CRASH_ROUNDS", "3"))


@dataclass
class Key:
    """What we know of one object from the writer that owns it: the last answer, and what was tried after it."""

    version: int = 0
    token: str = ""  # empty: absent
    tried: str | None = None  # a write without an answer; "" for a deletion


@dataclass
class Model:
    keys: dict[str, Key] = field(default_factory=dict)
    watched: dict[str, tuple[int, str]] = field(default_factory=dict)
    newest: int = 0  # version seen by the watch
    answered: int = 0  # version seen by a writer
    tokens: set[str] = field(default_factory=set)  # seen by the watch
    listed: dict[str, tuple[int, str]] = field(default_factory=dict)  # by the life that began last
    listed_version: int = 0

    def took(self, fact: dict[str, Any]) -> None:
        getattr(self, f"_{fact['fact']}")(fact)

    def _try(self, fact: dict[str, Any]) -> None:
        self.keys.setdefault(fact["key"], Key()).tried = "" if fact["verb"] == "delete" else fact["token"]

    def _ack(self, fact: dict[str, Any]) -> None:
        key = self.keys[fact["key"]]
        assert key.tried is not None
        key.token, key.tried = key.tried, None
        if fact["version"]:
            assert fact["version"] > key.version, "a version went back"
            key.version = fact["version"]
            self.answered = max(self.answered, key.version)

    def _event(self, fact: dict[str, Any]) -> None:
        assert fact["version"] > self.newest, "the watch repeated a version, or went back"
        if self.newest <= self.listed_version < fact["version"]:
            assert self.watched == self.listed, "the watch that went on after the restart missed a change"
        self.newest = fact["version"]
        if fact["gone"]:
            self.watched.pop(fact["key"])
            return
        assert fact["token"] not in self.tokens, "a write was done twice"
        self.tokens.add(fact["token"])
        self.watched[fact["key"]] = (fact["version"], fact["token"])

    def _list(self, fact: dict[str, Any]) -> None:
        assert fact["version"] >= max(self.newest, self.answered), "the cluster's version went back"
        objects = {name: (int(version), token) for name, (version, token) in fact["objects"].items()}
        for name, key in self.keys.items():
            token = objects.get(name, (0, ""))[1]
            assert token in {key.token, key.tried}, f"{name} has {token!r} after {key}"
            key.token, key.tried = token, None
        assert objects.keys() <= self.keys.keys()
        self.listed, self.listed_version = objects, fact["version"]
        if not self.newest:  # no life was long enough for the watch to see anything: it begins with this list
            self.watched = dict(objects)


def facts(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith(b"\n"):
            yield msgspec.json.decode(line)


def run_round(path: Path, number: int, model: Model, seed: int, kill_after: int, writers: int = WRITERS) -> None:
    """One life of the store: killed when it has said `kill_after` things."""
    script = Path(__file__).with_name("crash_writer.py")
    resume = str(model.newest or "")
    argv = [sys.executable, str(script), str(path), str(number), str(seed), str(writers), resume]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=1 << 20) as process:
        for count, fact in enumerate(facts(process)):
            model.took(fact)
            if count == kill_after:
                process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL, f"the writer ended by itself with {process.returncode}"


def test_a_watch_that_has_seen_nothing_yet_begins_with_the_list() -> None:
    model = Model()
    model.took({"fact": "try", "verb": "create", "key": "a", "token": "0.1"})
    model.took({"fact": "list", "version": 7, "objects": {"a": ["7", "0.1"]}})
    model.took({"fact": "event", "version": 8, "key": "a", "token": "0.2", "gone": False})
    assert model.watched == {"a": (8, "0.2")}


@pytest.mark.crash
@pytest.mark.timeout(600 + 5 * ROUNDS)
def test_what_was_acknowledged_survives_any_number_of_kills(root: Path, crash_seed: int) -> None:
    chance = random.Random(crash_seed)
    path, model = root / "cluster.db", Model()
    for number in range(ROUNDS):
        run_round(path, number, model, crash_seed, int(chance.expovariate(1 / 1500)))
    run_round(path, ROUNDS, model, crash_seed, kill_after=400)
    assert model.answered > 0
    assert model.newest > 0
