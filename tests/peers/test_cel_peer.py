"""Our program around the scheduler's CEL package gives the answers that the vectors have, so others can ask it."""

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers]

VECTORS = Path(__file__).parents[1] / "vectors" / "cel_selectors.json"
DEVICE = {"driver": "dra.example.com", "attributes": {"model": {"string": "a100"}}}
FEATURES = {"consumableCapacity": True, "listTypeAttributes": True}


@pytest.fixture
def program(peers: "Peers") -> Path:
    peers.need("dra-cel")
    return peers.binaries / "dra-cel"


def case(expression: str, **more: object) -> dict[str, object]:
    return {"id": "c", "expression": expression, "device": DEVICE, "features": FEATURES, "env": "stored", **more}


def ask(program: Path, *cases: dict[str, object], flags: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    answer = subprocess.run([program, *flags], input=json.dumps(cases), capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_it_agrees_with_every_vector(program: Path) -> None:
    vectors = json.loads(VECTORS.read_text())
    answer = subprocess.run([program, VECTORS], capture_output=True, text=True, check=True, timeout=120)
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [each["id"] for each in found] == [each["id"] for each in vectors]
    for vector, given in zip(vectors, found, strict=True):
        given["expected"] = given.pop("result")
        for key in vector.keys() & {"expected", "estimatedCost", "exceedsEstimateLimit", "actualCost"}:
            assert given[key] == vector[key], (vector["id"], key)
        assert vector.get("error", "") in given.get("error", ""), vector["id"]
        assert ("error" in vector) == ("error" in given), vector["id"]


def test_the_environment_and_the_features_count(program: Path) -> None:
    multiple = case("device.allowMultipleAllocations", features={}, env="new")
    tags = {"driver": "dra.example.com", "attributes": {"tags": {"strings": ["a", "b"]}}}
    lists = case('"b" in device.attributes["dra.example.com"].tags', device=tags, features={})
    answers = ask(program, multiple, multiple | {"env": "stored"}, lists, lists | {"features": FEATURES})
    assert [each["result"] for each in answers] == ["compile-error", False, "runtime-error", True]


def test_a_benchmark_counts_evaluations_and_names_what_does_not_compile(program: Path) -> None:
    good, bad = ask(program, case("true"), case("device."), flags=("--bench", "0.05"))
    assert good["evaluationsPerSecond"] > 1000 and "error" not in good
    assert bad["evaluationsPerSecond"] == 0 and "Syntax error" in bad["error"]


@pytest.mark.parametrize(
    ("flags", "text", "code", "error"),
    [
        ((), json.dumps([case("true", device={"attributes": 5})]), 1, 'case "c": '),
        ((), "[{", 1, "unexpected EOF"),
        (("--nope",), "[]", 2, "-nope"),
        (("/nonexistent",), "", 1, "/nonexistent"),
        (("a", "b"), "", 2, 'unexpected argument "b"'),
    ],
)
def test_what_it_cannot_read_is_an_error(
    program: Path, flags: tuple[str, ...], text: str, code: int, error: str
) -> None:
    answer = subprocess.run([program, *flags], input=text, capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert answer.stderr.startswith("dra-cel: ") and error in answer.stderr
