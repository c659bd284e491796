"""The table of a pod's life: complete, without dead ends, and safe whatever happens to the pod and to the acts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from devlet.node.pods import life
from devlet.node.pods.life import LIVE, TABLE, Act, Facts, Observation, State, drawing, observe

GOALS = (Observation.DUE, Observation.WAITING, Observation.DONE)
FLAGS = [each.name for each in fields(Facts) if each.name != "goal"]
ORDER = [State.NEW, State.ADMITTED, State.PREPARED, State.STOPPING, State.STOPPED, State.UNPREPARED, State.ENDED]


def all_facts() -> Iterator[Facts]:
    for goal in GOALS:
        for flags in product((False, True), repeat=len(FLAGS)):
            yield Facts(goal, *flags)


@pytest.fixture(scope="module")
def pairs() -> set[tuple[State, Observation]]:
    """All that can be observed: each state with all combinations of facts."""
    return {(state, observe(state, facts)) for facts in all_facts() for state in State}


def test_every_pair_that_can_be_observed_has_a_step_and_every_step_can_be_observed(
    pairs: set[tuple[State, Observation]],
) -> None:
    assert pairs == {(state, seen) for state, steps in TABLE.items() for seen in steps}


def test_every_state_knows_all_that_a_goal_can_be() -> None:
    assert [state for state in State if not set(GOALS) <= TABLE[state].keys()] == []


def test_every_act_is_in_the_table() -> None:
    assert {act for steps in TABLE.values() for step in steps.values() for act in step.acts} == set(Act)


def test_the_drawing_shows_the_table() -> None:
    assert drawing() in str(life.__doc__)


def test_a_pod_only_goes_forward_and_ends_for_good() -> None:
    moves = [(state, step.next) for state, steps in TABLE.items() for step in steps.values()]
    assert [move for move in moves if ORDER.index(move[1]) < ORDER.index(move[0])] == []
    assert {step.next for step in TABLE[State.ENDED].values()} == {State.ENDED}


def test_a_step_that_rests_does_so_last_and_changes_nothing_else() -> None:
    for state, steps in TABLE.items():
        for seen, step in steps.items():
            if Act.REST in step.acts:
                assert step.acts[-1] is Act.REST and step.next is state, (state, seen)
            else:
                assert step.acts or step.next is not state, (state, seen)


@pytest.mark.parametrize(
    ("act", "state"),
    [
        (Act.ADMIT, State.NEW),
        (Act.PREPARE, State.ADMITTED),
        (Act.START, State.PREPARED),
        (Act.STOP, State.STOPPING),
        (Act.UNPREPARE, State.STOPPED),
        (Act.RELEASE, State.UNPREPARED),
        (Act.DELETE, State.ENDED),
    ],
)
def test_what_changes_the_world_happens_in_one_state(act: Act, state: State) -> None:
    assert [each for each in State if any(act in step.acts for step in TABLE[each].values())] == [state]


@pytest.mark.parametrize(
    ("state", "facts", "seen"),
    [
        (State.NEW, Facts(Observation.DUE, is_gone=True), Observation.FINISHED),
        (State.NEW, Facts(Observation.DUE, is_finished=True, is_running=True), Observation.TERMINATING),
        (State.NEW, Facts(Observation.DUE, is_deleting=True), Observation.TERMINATING),
        (State.NEW, Facts(Observation.DUE, is_rejected=True, is_deleting=True), Observation.REJECTED),
        (State.NEW, Facts(Observation.DONE, is_deleting=True), Observation.DONE),
        (State.NEW, Facts(Observation.WAITING, is_complete=True), Observation.FOUND),
        (State.NEW, Facts(Observation.DUE, is_found=True, is_expired=True), Observation.EXPIRED),
        (State.ADMITTED, Facts(Observation.DUE, is_expired=True, is_complete=True), Observation.EXPIRED),
        (State.PREPARED, Facts(Observation.DUE, is_gone=True, is_expired=True), Observation.TERMINATING),
        (State.PREPARED, Facts(Observation.DUE, is_complete=True), Observation.COMPLETED),
        (State.STOPPING, Facts(Observation.WAITING, is_gone=True), Observation.WAITING),
        (State.ENDED, Facts(Observation.DUE, is_deleting=True), Observation.TERMINATING),
        (State.ENDED, Facts(Observation.DONE, is_deleting=True, is_gone=True), Observation.DONE),
    ],
)
def test_what_comes_first_is_observed(state: State, facts: Facts, seen: Observation) -> None:
    assert observe(state, facts) is seen


@dataclass
class World:
    """A node with one pod. Acts succeed, fail or have no effect yet, as `luck` says. Each act checks the state."""

    luck: Iterator[str]
    facts: dict[str, bool] = field(default_factory=dict)
    state: State = State.NEW
    admitted: bool = False
    prepared: bool = False  # the claims; True also while that is not known for certain
    running: bool = False
    wants_to_run: bool = True
    holds: bool = False
    stop_asked: bool = False
    over_for_cluster: bool = False

    def goal(self) -> Observation:
        done = {
            State.NEW: self.admitted,
            State.ADMITTED: self.prepared,
            State.PREPARED: self.running or not self.wants_to_run,
            State.STOPPING: self.stop_asked and not self.running,
            State.STOPPED: not self.prepared,
            State.UNPREPARED: not self.holds,
            State.ENDED: True,
        }
        if done[self.state]:
            return Observation.DONE
        return Observation.WAITING if next(self.luck) == "later" else Observation.DUE

    def look(self) -> Facts:
        return Facts(self.goal(), is_running=self.running, is_found=self.running, **self.facts)

    def perform(self, act: Act) -> bool:
        """Return False if it fails."""
        outcome = next(self.luck)
        if outcome == "no effect":
            return True
        if act is Act.ADMIT:
            self.admitted = self.holds = True
        elif act is Act.ADOPT:
            self.holds = True
        elif act is Act.PREPARE:
            self.prepared = True
        elif act is Act.START:
            assert self.state is State.PREPARED and self.prepared and self.holds
            self.running = True
        elif act is Act.STOP:
            self.stop_asked, self.running = True, False
        elif act is Act.UNPREPARE:
            assert not self.running
            self.prepared = False
        elif act is Act.RELEASE:
            assert not self.running and not self.prepared
            self.holds = False
        elif act is Act.PUBLISH:
            assert not self.running and not self.prepared and not self.holds
            self.over_for_cluster = True
        return outcome != "fails"  # it may have worked all the same

    def step(self) -> None:
        step = TABLE[self.state][observe(self.state, self.look())]
        if all(self.perform(act) for act in step.acts if act is not Act.REST):
            assert self.state is not State.ENDED or step.next is State.ENDED
            self.state = step.next


def lucky() -> Iterator[str]:
    while True:
        yield "works"


ENDINGS = ["is_gone", "is_finished", "is_deleting", "is_rejected", "is_expired", "is_complete"]
EVENTS = st.lists(st.sampled_from([""] * 30 + ["exits", "crash", *ENDINGS]), min_size=10, max_size=40)
LUCK = st.lists(st.sampled_from(["works", "works", "fails", "no effect", "later"]), min_size=10, max_size=60)


@settings(max_examples=300)
@given(events=EVENTS, luck=LUCK)
def test_whatever_happens_devices_are_held_while_containers_run_and_a_pod_that_is_gone_ends(
    events: list[str], luck: list[str]
) -> None:
    def chances() -> Iterator[str]:
        yield from luck
        yield from lucky()

    world = World(chances())
    for event in events:
        if event == "crash":
            if world.over_for_cluster:
                continue
            # What the worker remembered is lost; what the node holds is in its files.
            world.state, world.stop_asked, world.admitted = State.NEW, False, False
            world.facts.pop("is_rejected", None)
        elif event == "exits":
            world.running = False
        elif event == "is_rejected":
            if world.state is State.NEW and not world.admitted:
                world.facts[event] = True
        elif event == "is_complete":
            if world.state in LIVE:
                world.facts[event] = True
        elif event:
            world.facts[event] = True
        world.step()
    world.facts["is_gone"] = True
    world.luck = lucky()
    for _ in range(20):
        world.step()
    assert world.state is State.ENDED
    assert not (world.running or world.prepared or world.holds)


@given(facts=st.lists(st.builds(Facts, st.sampled_from(GOALS), *[st.booleans()] * len(FLAGS)), max_size=30))
def test_no_sequence_of_observations_skips_a_step_of_the_end(facts: list[Facts]) -> None:
    """Whatever is observed, containers start only after claims are prepared. Devices are released, and the end is
    published, only after containers have stopped and claims are unprepared."""
    state, reached = State.NEW, set[State]()
    for each in facts:
        step = TABLE[state][observe(state, each)]
        if Act.START in step.acts:
            assert State.ADMITTED in reached and State.STOPPING not in reached
        if Act.RELEASE in step.acts or Act.PUBLISH in step.acts:
            assert {State.STOPPING, State.STOPPED} <= reached
        reached.add(state)
        state = step.next
