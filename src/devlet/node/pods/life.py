"""The life of a pod on its node, as a table: what a worker sees of its pod in a state, what it does then, and which
state follows.

    NEW ──done, found──▶ ADMITTED
    NEW ──rejected, finished, terminating, expired──▶ STOPPING
    ADMITTED ──done──▶ PREPARED
    ADMITTED ──terminating, expired, completed──▶ STOPPING
    PREPARED ──terminating, expired, completed──▶ STOPPING
    STOPPING ──done──▶ STOPPED
    STOPPED ──done──▶ UNPREPARED
    UNPREPARED ──done──▶ ENDED

This module only decides: `observe` turns facts into an observation, and `TABLE` has the step for it. The worker
performs the acts of the step in their order, and enters its next state after the last one. If an act fails, the worker
observes again and repeats the step, so every act can be repeated. After a restart of devlet, every pod is NEW again.

Each state has one goal, which is due, has to wait, or is done. An act is an attempt: it may fail, and it need not have
had its effect when it returns. Only the observation that the goal is done leads to the next state.

Claims are unprepared and devices released before the cluster learns that the pod is over. So a pod that is scheduled in
its place finds them free.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

__all__ = ["LIVE", "TABLE", "Act", "Facts", "Observation", "State", "Step", "drawing", "observe"]


class State(Enum):
    NEW = "new"  # goal: the node admits the pod
    ADMITTED = "admitted"  # goal: the pod's claims are prepared
    PREPARED = "prepared"  # goal: the containers run that should run now
    STOPPING = "stopping"  # goal: no container runs
    STOPPED = "stopped"  # goal: the pod's claims are unprepared
    UNPREPARED = "unprepared"  # goal: the pod's devices are released
    ENDED = "ended"  # goal: the status of the pod, which holds nothing any more, is up to date


LIVE = frozenset({State.NEW, State.ADMITTED, State.PREPARED})
"""The states in which containers run or may yet be started."""


class Observation(Enum):
    # How the goal of the state is getting on
    DUE = "due"  # the next attempt can be made now
    WAITING = "waiting"  # a device plugin is missing, or the delay after the last attempt has not passed
    DONE = "done"

    # What takes precedence over the goal
    REJECTED = "rejected"  # the node does not admit the pod
    FOUND = "found"  # its containers were started before, and have survived the restart
    FINISHED = "finished"  # it is gone or has a final phase, and none of its containers runs
    TERMINATING = "terminating"  # it is gone, is being deleted, or was declared finished
    EXPIRED = "expired"  # its activeDeadlineSeconds have passed
    COMPLETED = "completed"  # its own containers have ended and will not be started again


class Act(Enum):
    # Admission
    ADOPT = "count a pod as admitted that was admitted before the restart"
    ADMIT = "allocate devices and check that the pod fits"
    REJECT = "report why the pod is not admitted"

    # Claims and containers
    PREPARE = "have the drivers prepare the claims"
    START = "start the containers that are due"
    SHOW_PLUGINS = "report the device plugins that the pod waits for"
    SHOW = "write the status"

    # The end
    EXPIRE = "report that the deadline has passed"
    COMPLETE = "note how the containers have ended"
    STOP = "stop the containers that still run"
    SUM_UP = "work out the last status"
    UNPREPARE = "have the drivers unprepare the claims"
    SHOW_STOPPED = "write how the containers have ended, but not that the pod is over"
    RELEASE = "give back devices and the place on the node"
    PUBLISH = "write the last status"
    FORGET = "remove what the runtime has of the pod"
    DELETE = "remove the pod from the cluster"
    SHOW_HEALTH = "write the latest health of the devices that the pod had"

    REST = "wait until something happens or it is time"


class Step(NamedTuple):
    next: State
    acts: tuple[Act, ...] = ()


def _step(next: State, *acts: Act) -> Step:
    return Step(next, acts)


_ENDING = {
    Observation.TERMINATING: _step(State.STOPPING),
    Observation.EXPIRED: _step(State.STOPPING, Act.EXPIRE),
}

TABLE: Mapping[State, Mapping[Observation, Step]] = MappingProxyType(
    {
        State.NEW: {
            Observation.DUE: _step(State.NEW, Act.ADMIT),
            Observation.WAITING: _step(State.NEW, Act.SHOW_PLUGINS, Act.REST),
            Observation.DONE: _step(State.ADMITTED),
            Observation.FOUND: _step(State.ADMITTED, Act.ADOPT),
            Observation.REJECTED: _step(State.STOPPING, Act.REJECT),
            Observation.FINISHED: _step(State.STOPPING),
            **_ENDING,
        },
        State.ADMITTED: {
            Observation.DUE: _step(State.ADMITTED, Act.PREPARE),
            Observation.WAITING: _step(State.ADMITTED, Act.SHOW, Act.REST),
            Observation.DONE: _step(State.PREPARED),
            Observation.COMPLETED: _step(State.STOPPING, Act.COMPLETE),
            **_ENDING,
        },
        State.PREPARED: {
            Observation.DUE: _step(State.PREPARED, Act.START),
            Observation.WAITING: _step(State.PREPARED, Act.SHOW_PLUGINS, Act.REST),
            Observation.DONE: _step(State.PREPARED, Act.SHOW, Act.REST),
            Observation.COMPLETED: _step(State.STOPPING, Act.COMPLETE),
            **_ENDING,
        },
        State.STOPPING: {
            Observation.DUE: _step(State.STOPPING, Act.STOP),
            Observation.WAITING: _step(State.STOPPING, Act.REST),
            Observation.DONE: _step(State.STOPPED, Act.SUM_UP),
        },
        State.STOPPED: {
            Observation.DUE: _step(State.STOPPED, Act.UNPREPARE),
            Observation.WAITING: _step(State.STOPPED, Act.SHOW_STOPPED, Act.REST),
            Observation.DONE: _step(State.UNPREPARED),
        },
        State.UNPREPARED: {
            Observation.DUE: _step(State.UNPREPARED, Act.RELEASE),
            Observation.WAITING: _step(State.UNPREPARED, Act.SHOW_STOPPED, Act.REST),
            Observation.DONE: _step(State.ENDED, Act.PUBLISH, Act.FORGET),
        },
        State.ENDED: {
            Observation.DUE: _step(State.ENDED, Act.SHOW_HEALTH),
            Observation.WAITING: _step(State.ENDED, Act.REST),
            Observation.DONE: _step(State.ENDED, Act.REST),
            Observation.TERMINATING: _step(State.ENDED, Act.DELETE),
        },
    }
)


class Facts(Struct, frozen=True, gc=False):
    """What is known of a pod. `goal` is DUE, WAITING or DONE: how the goal of the pod's state is getting on. `is_found`
    is for a new pod: containers of it have been started, and a restart of the machine has not ended them."""

    goal: Observation
    is_gone: bool = False
    is_finished: bool = False
    is_deleting: bool = False
    is_running: bool = False
    is_rejected: bool = False
    is_found: bool = False
    is_expired: bool = False
    is_complete: bool = False


def observe(state: State, facts: Facts) -> Observation:
    """Return what matters of the facts in this state. `TABLE` has a step for it."""
    if state is State.NEW:
        return _entering(facts)
    if state in (State.ADMITTED, State.PREPARED):
        return _living(facts)
    if state is State.ENDED and facts.is_deleting and not facts.is_gone:
        return Observation.TERMINATING
    return facts.goal


def _entering(facts: Facts) -> Observation:
    if facts.is_rejected:
        return Observation.REJECTED
    if facts.goal is Observation.DONE:
        return Observation.DONE
    if (facts.is_gone or facts.is_finished) and not facts.is_running:
        return Observation.FINISHED
    found = _living(facts)
    if found in (Observation.TERMINATING, Observation.EXPIRED):
        return found
    return Observation.FOUND if facts.is_found or facts.is_complete else facts.goal


def _living(facts: Facts) -> Observation:
    if facts.is_gone or facts.is_deleting or facts.is_finished:
        return Observation.TERMINATING
    if facts.is_expired:
        return Observation.EXPIRED
    return Observation.COMPLETED if facts.is_complete else facts.goal


def drawing() -> str:
    """Return the transitions of the table from one state to another, as in the text of this module."""
    lines = []
    for state, steps in TABLE.items():
        for target in State:
            seen = [each.value for each in Observation if each in steps and steps[each].next is target]
            if seen and target is not state:
                lines.append(f"    {state.name} ──{', '.join(seen)}──▶ {target.name}\n")
    return "".join(lines)
