from dataclasses import replace
from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from tests.support.manifests.choices import Choices
from tests.support.manifests.expected import Stage, differences, read_stages
from tests.support.manifests.seen import Claim, Container, Event, Pod, Result, Rule, Seen

FILE = """
stages:
- pods: {train: {phase: Running, node: n1}, wait: {phase: Pending}}
  claims:
    train/gpu:
      reserved: [train]
      results:
      - {request: gpu, device: 'd/n1/gpu-{a}'}
      - {request: part, device: 'd/n1/gpu-{b}', share: '{s}', consumed: {memory: 60G}, admin: true, awaits: [Ready]}
    wait/gpu: {}
  containers:
    train/main:
      env: ['GPU_{a}=gpu-{a}', 'CLAIM={uid:train/gpu}']
      mounts: [{path: /in, source: /out, options: [ro]}]
      devices: [{path: /dev/null, access: rw}]
  events: {wait: {FailedScheduling: {reference: cannot, devlet: in use}, Other: some}}
  rules: {broken: {status: "False", reason: Completed, message: 1 pod}}
"""
PART = Result("part", "d/n1/gpu-1", "s-1", (("memory", "58593750Ki"),), admin=True, awaits=("Ready",))
SEEN = Seen(
    {"train": Pod("Running", "n1"), "wait": Pod("Pending")},
    {"train/gpu": Claim("u-1", (Result("gpu", "d/n1/gpu-0"), PART), ("train",)), "wait/gpu": Claim("u-2")},
    {"train/main": Container(("CLAIM=u-1", "GPU_0=gpu-0"), (("/in", "/out", ("ro",)),), (("/dev/null", "rw"),))},
    [
        Event("wait", "FailedScheduling", "something else"),
        Event("wait", "FailedScheduling", "all in use"),
        Event("wait", "Other", "awesome"),
    ],
    {"broken": Rule("False", "Completed", "1 pod evicted")},
)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    file = tmp_path / "x.expected.yaml"
    file.write_text(FILE)
    [only] = read_stages(file)
    return only


def compared(stage: Stage, seen: Seen, control: str = "devlet") -> list[str]:
    choices = Choices().with_uids({name: claim.uid for name, claim in seen.claims.items()})
    return differences(stage, seen, choices, control)


def test_a_world_as_expected_has_no_differences(stage: Stage) -> None:
    assert compared(stage, SEEN) == []


def test_messages_are_those_of_whoever_controls(stage: Stage) -> None:
    [text] = compared(stage, SEEN, "reference")
    assert text.startswith("event FailedScheduling of wait: none like 'cannot', only ['something else', 'all in use']")


def test_what_is_missing_and_what_should_not_be_there_are_differences(stage: Stage) -> None:
    assert compared(stage, replace(SEEN, pods={"train": SEEN.pods["train"], "more": Pod("Running")})) == [
        "pod more: should not be there: Pod(phase='Running', node='', ended=(), amiss=(), waits='')",
        "pod wait: is not there",
    ]
    assert compared(stage, replace(SEEN, rules={})) == ["rule broken: is not there"]
    assert len(compared(stage, replace(SEEN, containers={"train/main": Container(), "x/y": Container()}))) == 4
    assert len(compared(stage, replace(SEEN, events=[]))) == 2


def test_a_container_that_runs_and_is_not_ready_is_a_difference(stage: Stage) -> None:
    found = replace(SEEN, pods={**SEEN.pods, "train": Pod("Running", "n1", amiss=("main",))})
    [text] = compared(stage, found)
    assert "amiss=('main',)" in text


def test_a_claim_that_was_made_twice_is_a_difference_unless_the_reference_made_it(stage: Stage) -> None:
    twice = replace(SEEN, claims={**SEEN.claims, "train-gpu-x2kf9": Claim("u9", spare=True)})
    assert len(compared(stage, twice)) == len(compared(stage, SEEN)) + 1
    assert compared(stage, twice, "reference") == compared(stage, SEEN, "reference")
    given = replace(
        twice, claims={**SEEN.claims, "train-gpu-x2kf9": Claim("u9", (Result("gpu", "d/p/x"),), spare=True)}
    )
    assert len(compared(stage, given, "reference")) == len(compared(stage, SEEN, "reference")) + 1


@pytest.mark.parametrize(
    "result",
    [
        replace(PART, request="other"),
        replace(PART, device="d/n1/gpu-0"),
        replace(PART, share=""),
        replace(PART, consumed=()),
        replace(PART, consumed=(("memory", "61G"),)),
        replace(PART, admin=False),
        replace(PART, awaits=()),
    ],
    ids=[
        "request",
        "device of another letter",
        "no share",
        "nothing consumed",
        "too much",
        "not admin",
        "no condition",
    ],
)
def test_a_device_that_is_another_one_in_any_way_is_a_difference(stage: Stage, result: Result) -> None:
    claim = Claim("u-1", (Result("gpu", "d/n1/gpu-0"), result), ("train",))
    [text] = compared(stage, replace(SEEN, claims={**SEEN.claims, "train/gpu": claim}))
    assert text.startswith("claim train/gpu: has Result")


def test_a_claim_with_fewer_devices_or_other_users_is_a_difference(stage: Stage) -> None:
    claim = Claim("u-1", (Result("gpu", "d/n1/gpu-0"),), ("train", "more"))
    texts = compared(stage, replace(SEEN, claims={**SEEN.claims, "train/gpu": claim}))
    assert [text.split(" ")[2] for text in texts if text.startswith("claim")] == ["reserved", "has"]


def test_each_part_of_a_container_is_compared(stage: Stage) -> None:
    right = SEEN.containers["train/main"]
    for wrong, text in (
        (
            replace(right, env=("CLAIM=u-1", "GPU_1=gpu-1")),
            "environment: without ['GPU_0=gpu-0'], with ['GPU_1=gpu-1']",
        ),
        (replace(right, env=("CLAIM=u-1", "CLAIM=u-1", "GPU_0=gpu-0")), "environment: ('CLAIM=u-1', 'CLAIM=u-1',"),
        (replace(right, mounts=()), "mounts: without"),
        (replace(right, devices=(("/dev/null", "r"),)), "device nodes: without"),
        (replace(right, more=("hooks",)), "more: without [], with ['hooks']"),
    ):
        [found] = compared(stage, replace(SEEN, containers={"train/main": wrong}))
        assert found.startswith(f"container train/main: {text}")


def test_rules_are_compared_with_their_message(stage: Stage) -> None:
    for wrong in (
        Rule("True", "Completed", "1 pod"),
        Rule("False", "x", "1 pod"),
        Rule("False", "Completed", "2 pods"),
    ):
        assert len(compared(stage, replace(SEEN, rules={"broken": wrong}))) == 1


def test_a_file_with_a_word_that_is_unknown_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.expected.yaml"
    for text in ("stages: [{pod: {}}]", "stages: [", "stages: {}"):
        file.write_text(text)
        with pytest.raises(InvalidInput, match=r"x\.expected\.yaml"):
            read_stages(file)
