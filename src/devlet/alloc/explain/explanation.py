"""Explain where claims fit, why they do not fit elsewhere, and what would help.

Nodes in the same situation are examined once. The nodes that come closest to fitting are described in detail, the
others are counted.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from devlet.alloc.allocator import Allocator, Fit, NoFit, Outcome
from devlet.alloc.explain.agreement import at_odds
from devlet.alloc.explain.changes import Verified, helpful, merged
from devlet.alloc.explain.conflict import Wish, smallest, wishes_of
from devlet.alloc.explain.proposals import missing_classes, proposals
from devlet.alloc.explain.report import Conflict, Explanation, NodeReport, VerdictKind
from devlet.alloc.explain.sentences import blocked, conflict_sentence, distance
from devlet.alloc.explain.situations import situation
from devlet.alloc.explain.standing import Scene, evaluate, look
from devlet.alloc.explain.trials import Trials
from devlet.alloc.explain.verdicts import Elsewhere, Verdicts
from devlet.alloc.requests import claim_name
from devlet.alloc.search import Limits
from devlet.cel.program import Interrupted
from devlet.errors import InvalidInput
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node

__all__ = ["explain", "find_changes"]

DETAILED_MAX = 5  # nodes described in detail
CHANGED_MAX = 3  # situations for which changes are tried
CAUSES_MAX = 6  # listed in the summary
CONFLICT_RUNS = 2_000  # runs of the search, for all situations together

_SELECTOR_KINDS = (VerdictKind.SELECTOR_ERROR, VerdictKind.REQUEST_SELECTOR, VerdictKind.CLASS_SELECTOR)


@dataclass(slots=True)
class _Group:
    """Nodes in the same situation; the first stands for all. `scene` is None if their pools cannot be read."""

    scene: Scene | None
    outcome: Outcome | InvalidInput
    nodes: list[Node] = field(default_factory=list)
    wishes: tuple[Wish, ...] = ()
    conflict: Conflict | None = None

    @property
    def fits(self) -> bool:
        return isinstance(self.outcome, Fit)

    @property
    def nearness(self) -> tuple[bool, tuple[int, int], bool]:
        return (not self.fits, distance(self.scene) if self.scene else (99, 0), isinstance(self.outcome, InvalidInput))


def explain(
    allocator: Allocator,
    nodes: Sequence[Node],
    claims: Sequence[ResourceClaim],
    *,
    limits: Callable[[], Limits] = Limits,
    all_nodes: bool = False,
) -> Explanation:
    """Explain the claims. `limits` are created for each search; with `all_nodes` every node is described, not only the
    closest."""
    allocator.selectors.give_up = limits().give_up
    try:
        return _Explainer(allocator, nodes, claims, limits).explanation(all_nodes)
    except Interrupted as e:
        return _unfinished(nodes, claims, f"time ran out while a selector was evaluated: {e}")


def _unfinished(nodes: Sequence[Node], claims: Sequence[ResourceClaim], text: str) -> Explanation:
    reports = tuple(NodeReport(node.name, "unknown", text) for node in nodes[:DETAILED_MAX])
    return Explanation(tuple(map(claim_name, claims)), False, f"not known: {text}", reports, ((text, len(nodes)),))


def find_changes(
    allocator: Allocator,
    nodes: Sequence[Node],
    claims: Sequence[ResourceClaim],
    limits: Callable[[], Limits] = Limits,
) -> list[Verified]:
    """Return only the changes that would help, each with the changed claims."""
    return _Explainer(allocator, nodes, claims, limits).changes()


class _Explainer:
    def __init__(
        self,
        allocator: Allocator,
        nodes: Sequence[Node],
        claims: Sequence[ResourceClaim],
        limits: Callable[[], Limits],
    ) -> None:
        self._allocator = allocator
        self._limits = limits
        self._claims = claims
        self._wanted = allocator.read(claims)
        self._give_up = limits().give_up
        self._elsewhere = Elsewhere(allocator, self._give_up)
        self._conflict_trials = Trials(limits, runs=CONFLICT_RUNS)
        self._nodes = nodes
        self._groups = self._grouped(nodes)
        self._groups.sort(key=lambda group: group.nearness)
        for group in self._groups:
            self._find_conflict(group)

    # Situations

    def _grouped(self, nodes: Sequence[Node]) -> list[_Group]:
        groups: dict[Hashable, _Group] = {}
        with suppress(InvalidInput, Interrupted):  # in that case each node gets its own answer
            evaluate(self._allocator, list(map(self._allocator.layout, nodes)), self._wanted, self._give_up)
        for node in nodes:
            key, scene = self._situation(node)
            if key not in groups:
                groups[key] = _Group(scene, self._outcome(node))
            groups[key].nodes.append(node)
        return list(groups.values())

    def _situation(self, node: Node) -> tuple[Hashable, Scene | None]:
        try:
            scene = self._look(node)
            return situation(scene), scene
        except (InvalidInput, Interrupted) as e:
            return str(e), None

    def _look(self, node: Node) -> Scene:
        return look(self._allocator, self._allocator.layout(node), self._wanted, self._give_up)

    def _outcome(self, node: Node) -> Outcome | InvalidInput:
        try:
            return self._allocator.allocate_wanted(node, self._wanted, self._limits())
        except InvalidInput as e:
            return e

    # Conflicts

    def _find_conflict(self, group: _Group) -> None:
        if group.fits or group.scene is None or self._wanted.error or _is_unknown(group.outcome):
            return
        group.wishes = self._wishes(group)
        if group.wishes:
            text, cause = conflict_sentence(group.scene, group.wishes, self._detail(group))
            group.conflict = Conflict(tuple(wish.text for wish in group.wishes), text, cause)

    def _wishes(self, group: _Group) -> tuple[Wish, ...]:
        scene, node = group.scene, group.nodes[0]
        assert scene is not None
        if isinstance(group.outcome, NoFit):
            for wish in wishes_of(self._claims):
                if not wish.is_constraint:
                    options = scene.seen[wish.claim, wish.index]
                    if all(blocked(scene, option, seen) for option, seen in options):
                        return (wish,)
            if found := at_odds(scene):
                return self._named(*found)
        if self._conflict_trials.is_spent:
            return ()  # an incomplete search could return a conflict that is not minimal
        return smallest(self._claims, lambda fewer: self._conflict_trials.fits(self._allocator, node, fewer))

    def _named(self, claim: int, constraint: int, requests: Sequence[int]) -> tuple[Wish, ...]:
        wanted = {(claim, True, constraint), *((claim, False, request) for request in requests)}
        found = [w for w in wishes_of(self._claims) if (w.claim, w.is_constraint, w.index) in wanted]
        return tuple(sorted(found, key=lambda wish: (wish.is_constraint, wish.index)))

    def _detail(self, group: _Group) -> str:
        """Return what is false in the selector that excludes most devices, if the conflict is a single request."""
        if len(group.wishes) != 1 or group.wishes[0].is_constraint or group.scene is None:
            return ""
        wish = group.wishes[0]
        options = group.scene.seen[wish.claim, wish.index]
        if len(options) != 1:
            return ""
        option, seen = options[0]
        found = blocked(group.scene, option, seen)
        if found is None or found.at not in _SELECTOR_KINDS:
            return ""
        first = next(each for each in seen if each.kind is found.at)
        verdict = Verdicts(group.scene, self._elsewhere).verdict(option, first)
        return f"{verdict.part} is false ({verdict.detail})" if found.at in _SELECTOR_KINDS[1:] else verdict.detail

    # Answers

    def explanation(self, all_nodes: bool) -> Explanation:
        fitting = sum(len(group.nodes) for group in self._groups if group.fits)
        counted: Counter[str] = Counter()
        for group in self._groups:
            if not group.fits:
                counted[self._cause(group)] += len(group.nodes)
        causes = tuple(counted.most_common())
        return Explanation(
            tuple(map(claim_name, self._claims)),
            fitting > 0,
            self._summary(fitting, causes),
            self._reports(all_nodes),
            causes,
            tuple(each.change for each in self.changes()) if not fitting else (),
        )

    def _cause(self, group: _Group) -> str:
        if group.conflict:
            return group.conflict.cause
        return self._text(group.outcome, None)

    def _summary(self, fitting: int, causes: Sequence[tuple[str, int]]) -> str:
        text = f"{fitting}/{len(self._nodes)} nodes are available"
        if fitting or not causes:
            return f"{text}: {self._fitting_names()}" if fitting else text
        told = [f"{count} node(s): {cause.splitlines()[0]}" for cause, count in causes[:CAUSES_MAX]]
        rest = sum(count for _, count in causes[CAUSES_MAX:])
        return f"{text}: {'; '.join([*told, f'{rest} for other reasons'] if rest else told)}"

    def _fitting_names(self) -> str:
        names = [node.name for group in self._groups if group.fits for node in group.nodes]
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

    def _reports(self, all_nodes: bool) -> tuple[NodeReport, ...]:
        if all_nodes:
            by_name = {id(node): group for group in self._groups for node in group.nodes}
            return tuple(self._report(by_name[id(node)], node) for node in self._nodes)
        firsts = [(group, group.nodes[0]) for group in self._groups]
        others = [(group, node) for group in self._groups for node in group.nodes[1 : DETAILED_MAX + 1]]
        return tuple(self._report(group, node) for group, node in [*firsts, *others][:DETAILED_MAX])

    def _report(self, group: _Group, node: Node) -> NodeReport:
        if group.scene is None:
            return NodeReport(node.name, _kind(group.outcome), self._text(group.outcome, None))
        is_first = node is group.nodes[0]
        scene = group.scene if is_first else self._look(node)
        outcome = group.outcome if is_first or not group.fits else self._outcome(node)
        fit = outcome if isinstance(outcome, Fit) else None
        reports = Verdicts(scene, self._elsewhere, fit).reports()
        return NodeReport(node.name, _kind(outcome), self._text(outcome, group.conflict), reports, group.conflict)

    def _text(self, outcome: Outcome | InvalidInput, conflict: Conflict | None) -> str:
        if isinstance(outcome, Fit):
            return "; ".join(
                f"{claim_name(claim)} gets {', '.join(f'{c.entry.identity} for {c.step.full_name}' for c in chosen)}"
                for claim, chosen in zip(outcome.claims, outcome.chosen, strict=True)
                if chosen
            )
        if isinstance(outcome, InvalidInput):
            return str(outcome)
        if conflict:
            return conflict.text
        return outcome.reason or "the requests cannot be satisfied together"

    # Changes

    def changes(self) -> list[Verified]:
        if any(group.fits for group in self._groups):
            return []
        trials = Trials(self._limits)
        found: list[Verified] = []
        for group in self._groups[:CHANGED_MAX]:
            node = group.nodes[0]
            if self._wanted.error:
                names = list(self._allocator.inventory.classes)
                found += helpful(self._allocator, node, missing_classes(self._claims, names), trials)
            elif group.scene is not None and group.wishes:
                tried = proposals(group.scene, group.wishes, self._elsewhere)
                found += helpful(self._allocator, node, tried, trials)
        return merged(found)


def _is_unknown(outcome: Outcome | InvalidInput) -> bool:
    return isinstance(outcome, NoFit) and outcome.is_exhausted


def _kind(outcome: Outcome | InvalidInput) -> str:
    if isinstance(outcome, Fit):
        return "fit"
    if isinstance(outcome, InvalidInput):
        return "error"
    return "unknown" if outcome.is_exhausted else "no-fit"
