"""The cases of the specification's chapter 9: tests/scenarios/alloc/9.*.yaml, one file per section."""

from dataclasses import replace
from pathlib import Path

import pytest

from devlet.alloc.allocator import Allocator, NoFit, Outcome
from devlet.alloc.features import Rules
from devlet.alloc.problems import read_problem, solve_problem
from devlet.alloc.search import Limits
from tests.support.allocation.cases import Case, load
from tests.support.allocation.check import IMPROVED, REFERENCE, check
from tests.support.allocation.selectors import selector_matches
from tests.support.allocation.shorthand import problem as expanded

pytestmark = pytest.mark.spec("DA-9")

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "alloc"

# Answers to problems are repeatable, so all share IDs in them are the same.
NUMBERED = replace(IMPROVED, unique_shares=False)

# Not a problem but a table of amounts in the specification; it gives no names.
TABLE = ("amount-", "policy-")

SECTIONS = {
    "9.1": """
        empty
        simple
        other-node
        small-and-large
        small-and-large-backtrack-requests
        small-and-large-backtrack-claims
        devices-split-across-different-slices
        obsolete-slice
        duplicate-slice
        no-slices
        not-enough-suitable-devices
        no-classes
        unknown-class
        empty-class
        no-claims-to-allocate
        several-different-drivers
        already-allocated-devices
        many-devices-okay
        max-number-devices
        too-many-devices-single-request
        too-many-devices-total
        all-devices-invalid-CEL
        different-resourceslices-in-pool-can-target-different-nodes
        invalid-pool-is-ok-if-devices-can-be-allocated-from-other
        invalid-pool-is-error-if-no-other-device-can-be-allocated
        no-allocation-from-incomplete-pools
        multi-host-resource-pool-with-stale-slice-for-current-node
        multi-host-resource-pool-complete-update-from-node-1-to-node-2
        multi-host-resource-pool-complete-update-from-node-2-to-node-1
        multi-host-resource-pool-incomplete-update-from-node-1-to-node-2
        multi-host-resource-pool-incomplete-update-from-node-2-to-node-1
        lexicographical-sorting-pools
        lexicographical-sorting-pools-with-binding-conditions
        lexicographical-sorting-slices
        lexicographical-sorting-slices-with-binding-conditions
    """,
    "9.2": """
        network-attached-device
        unsuccessful-allocation-network-attached-device
        many-network-attached-devices
        local-and-network-attached-devices
        node-restriction
        partitionable-devices-disabled-per-device-node-selection
        partitionable-devices-per-device-node-selection-nodename
        partitionable-devices-per-device-node-selection-node-selector
        partitionable-devices-per-device-node-selection-node-selector-multiple-devices
    """,
    "9.3": """
        all-devices-single
        all-devices-many
        all-devices-with-consumed-counters
        all-devices-of-the-incomplete-pool
        all-devices-plus-another
        all-devices-plus-another-reversed
        all-devices-many-plus-another
        all-devices-many-plus-another-reversed
        all-devices-no-solution
        all-devices-no-solution-reversed
        all-devices-slice-without-devices
        all-devices-no-slices
        all-devices-some-allocated
        allocation-mode-all-with-multi-host-resource-pool
    """,
    "9.4": """
        admin-access-disabled
        admin-access-enabled
        all-devices-some-allocated-admin-access
        all-devices-some-allocating-admin-access
        count-devices-some-allocated-admin-access
        separate-claims-share-device-admin-access
        admin-access-claims-device-allocating-for-non-admin-access
    """,
    "9.5": """
        with-constraint
        with-constraint-non-existent-attribute
        with-constraint-not-matching-int-attribute
        with-constraint-not-matching-string-attribute
        with-constraint-not-matching-bool-attribute
        with-constraint-not-matching-version-attribute
        with-constraint-not-matching-int-attribute-all-devices
        partitionable-all-mode-constraint-must-error-with-reserved-counter
        with-constraint-for-request
        with-constraint-for-request-retry
        with-class-device-config
        with-class-device-config-with-multiple-request-and-configs
        claim-with-device-config
        unknown-selector
        unknown-allocation-mode
        unknown-constraint
        invalid-CEL-one-device
        invalid-CEL-one-device-class
        invalid-CEL-all-devices
    """,
    "9.6": """
        prioritized-list-first-unavailable
        prioritized-list-non-available
        prioritized-list-device-config
        prioritized-list-class-config
        prioritized-list-subrequests-with-expressions
        prioritized-list-subrequests-with-constraints-ref-parent-request
        prioritized-list-subrequests-with-constraints-ref-sub-request
        prioritized-list-subrequests-with-allocation-mode-all
        prioritized-list-allocation-mode-all-multiple-requests
        prioritized-list-allocation-mode-all
        prioritized-list-allocation-mode-all-with-selectors
        prioritized-list-allocation-mode-all-with-selectors-multiple-pools
        prioritized-list-allocation-mode-all-with-selectors-multiple-pools-across-nodes
        prioritized-list-allocation-mode-all-with-selectors-deviceclass-subset
        all-devices-slice-without-devices-prioritized-list
        all-devices-no-slices-prioritized-list
        all-devices-some-allocated-prioritized-list
        prioritized-list-disabled
        prioritized-list-multi-request
        prioritized-list-with-backtracking
        prioritized-list-too-many-in-first-subrequest
        prioritized-list-max-allocation-limit-request
        prioritized-list-max-allocation-allocation-mode-all
    """,
    "9.7": """
        partitionable-devices-single-device
        partitionable-devices-taint-releases-counter
        partitionable-devices-constraint-releases-counter
        partitionable-devices-counter-cache-scoped-by-pool-ID
        partitionable-devices-counter-cache-not-crossed-between-driver-schemas
        partitionable-devices-prioritized-list
        partitionable-devices-multiple-devices
        partitionable-devices-multiple-capacity-pools
        partitionable-devices-multiple-counters
        partitionable-devices-multiple-pools
        partitionable-devices-unused-counters-in-counter-set
        partitionable-devices-no-capacity-available
        partitionable-devices-overallocated-capacity-pool
        partitionable-devices-disabled-device-consumes-counters
        partitionable-devices-disabled-other-device-do-not-consume-counters
        partitionable-devices-with-attribute-selector
        partitionable-devices-same-counter-set-name-in-different-resource-slices
        partitionable-devices-device-counter-consumption-references-unknown-counter-set
        partitionable-devices-device-counter-consumption-references-unknown-counter-in-counter-set
        partitionable-devices-device-counter-consumption-references-counter-set-in-other-pool
        partitionable-devices-devices-on-different-nodes-consume-same-counter-set
        partitionable-devices-validation-error-on-non-targeting-slice
    """,
    "9.8": """
        tainted-two-devices
        tainted-one-device-two-taints
        tainted-two-devices-tolerated
        tainted-two-devices-prioritized-list-tolerated
        tainted-no-effect
        tainted-one-device-two-taints-both-tolerated
        tainted-disabled
        tainted-prioritized-list
        tainted-prioritized-list-disabled
        tainted-admin-access
        tainted-admin-access-disabled
        tainted-all-devices-single
        tainted-all-devices-single-disabled
    """,
    "9.9": """
        device-binding-conditions
        binding-conditions-multiple-devices
        binding-conditions-with-and-without
        binding-conditions-without-feature-gate
        partitionable-devices-with-binding-conditions
        partitionable-devices-with-binding-conditions-multiple
        partitionable-devices-with-binding-conditions-some-devices-no-conditions
        partitionable-devices-with-binding-conditions-multi-slices
        partitionable-devices-with-binding-conditions-and-taints
        partitionable-devices-with-binding-conditions-and-taints-tolerated
    """,
    "9.10": """
        consumable-capacity-disabled-feature
        consumable-capacity-disabled-feature-with-prioritized-list
        consumable-capacity-multi-allocatable-device-with-missing-capacity-request
        consumable-capacity-multi-allocatable-device-allocation-mode-all-with-missing-capacity-request
        consumable-capacity-multi-allocatable-device-without-capacity-without-capacity-request
        consumable-capacity-multi-allocatable-device-without-policy-without-capacity-request
        consumable-capacity-multi-allocatable-device-without-policy-without-capacity-request-block
        consumable-capacity-multi-allocatable-device-without-policy-with-capacity-request
        consumable-capacity-multi-allocatable-device-with-policy-without-capacity-request
        consumable-capacity-multi-allocatable-device-with-zero-request-policy
        consumable-capacity-multi-allocatable-device-violates-zero-request-policy
        consumable-capacity-multi-allocatable-device-with-range-policy-with-capacity-request
        consumable-capacity-multi-allocatable-device-with-range-policy-step
        consumable-capacity-multi-allocatable-device-with-valid-values-policy
        consumable-capacity-multi-allocatable-device-with-valid-values-policy-round-up
        consumable-capacity-multi-allocatable-device-with-exceeded-consumable-capacity-request
        consumable-capacity-multi-allocatable-device-with-request-over-max-sharing-policy
        consumable-capacity-multi-allocatable-device-with-allocated-capacity-use-remaining
        consumable-capacity-multi-allocatable-device-with-allocated-capacity-next-device
        consumable-capacity-with-multi-allocatable-device-backtrack
        consumable-capacity-multi-allocatable-device-with-subrequest
        consumable-capacity-multi-allocatable-device-with-no-available-consumable-capacity
        consumable-capacity-multi-allocatable-device-allocation-mode-all-filter-out-no-capacity
        consumable-capacity-multi-allocatable-device-allocation-mode-all-filter-out-insufficient-capacity
        consumable-capacity-multi-allocatable-device-allocation-mode-all-allocating-sufficient
        consumable-capacity-multi-allocatable-device-allocation-mode-all-in-use-sufficient
        consumable-capacity-multi-allocatable-device-allocation-mode-all-allocating-insufficient
        consumable-capacity-multi-allocatable-device-allocation-mode-all-in-use-insufficient
        consumable-capacity-dedicated-device-with-consumable-capacity-request
        consumable-capacity-dedicated-device-with-multiple-consumable-capacity-request
        consumable-capacity-rejection-rolls-back-constraints
        consumable-capacity-with-partitionable-device-multiple-capacity-pools
        allow-multiple-allocations-exclude-multi-allocatable-device-by-class-selector
        allow-multiple-allocations-not-allocate-multi-allocatable-device-which-already-dedicated
        allow-multiple-allocations-not-allocate-dedicated-device-which-change-from-multi-allocatable
        allow-multiple-allocations-with-partitionable-device
        allow-multiple-allocations-with-shared-device-counter-cross-cycle
        partitionable-consumable-capacity-backtrack-releases-counter
        partitionable-empty-capacity-multiple-share-backtrack-keeps-counter-ownership
    """,
    "9.11": """
        with-distinct-constraints
        with-distinct-constraints-attribute-not-set
        with-distinct-constraints-unknown-type-attribute
        with-distinct-constraints-with-subrequests
        distinct-constraint-one-multi-allocatable-device-with-distinct-constraint
        distinct-constraint-two-multi-allocatable-devices-with-distinct-constraint
    """,
    "9.12": """
        list-attributes-match-constaint-scalar-string-values
        list-attributes-match-constaint-list-of-string-values-with-common-elements
        list-attributes-match-constaint-list-of-string-values-with-partially-common-elements
        list-attributes-match-constaint-list-of-string-values-without-common-elements
        list-attributes-match-constaint-mixed-scalar-and-list-of-string-values-with-common-elements
        list-attributes-match-constaint-mixed-scalar-and-list-of-string-values-with-partially-common-elements
        list-attributes-match-constaint-mixed-scalar-and-list-of-string-values-without-common-elements
        list-attributes-match-constaint-list-of-int-values-with-common-elements
        list-attributes-match-constaint-list-of-bool-values-with-common-elements
        list-attributes-match-constaint-list-of-version-values-with-common-elements
        list-attributes-match-constaint-with-empty-or-unknown-type
        list-attributes-disabled-match-constraint-with-lists
        list-attributes-disabled-distinct-constraint-with-lists
        list-attributes-distinct-constraint-scalar-string-values-all-distinct
        list-attributes-distinct-constraint-scalar-string-values-not-distinct
        list-attributes-distinct-constraint-list-of-string-values-all-distinct
        list-attributes-distinct-constraint-list-of-string-values-with-common-elements
        list-attributes-distinct-constraint-mixed-scalar-and-list-all-distinct
        list-attributes-distinct-constraint-mixed-scalar-and-list-with-common-elements
        list-attributes-distinct-constraint-list-of-int-values-all-distinct
        list-attributes-distinct-constraint-list-of-bool-values-all-distinct
        list-attributes-distinct-constraint-list-of-version-values-all-distinct
        list-attributes-distinct-constaint-with-empty-or-unknown-type
    """,
    "9.13": """
        check-combinations-within-single-request-single-pool-single-slice
        check-combinations-within-single-request-single-pool-multiple-slices
        check-combinations-within-single-request-multiple-pools-multiple-slices
        check-combinations-within-single-request-many-pools
        check-combinations-with-backtracking
        check-combinations-with-backtracking-across-slices-and-pools
        check-combinations-with-prioritized-list
        interrupt
    """,
}

NAMES = [name for section in SECTIONS.values() for name in section.split()]
CASES = [case for file in sorted(SCENARIOS.glob("9.*.yaml")) for case in load(file)]


def with_id(case: Case) -> object:
    return pytest.param(case, id=case.name, marks=pytest.mark.spec(f"DA-9.{case.name}"))


every_case = pytest.mark.parametrize("case", [with_id(case) for case in CASES])


def test_no_case_of_the_specification_is_missing() -> None:
    found = [case.name for case in CASES if not case.name.startswith(TABLE)]
    assert sorted([*found, "interrupt"]) == sorted(NAMES)
    assert sum(case.name.startswith(TABLE) for case in CASES) == 15


@every_case
def test_the_answer_is_that_of_the_reference(case: Case) -> None:
    (answer,) = solve_problem(case.problem, reference_compatible=True)
    assert case.expected.differences(answer) == []
    if answer["outcome"] == "fit":
        matches = selector_matches(case.problem)
        assert check(case.problem, answer["node"], answer["results"], matches, REFERENCE) == []


@every_case
def test_improvements_change_only_what_they_are_about(case: Case) -> None:
    (answer,) = solve_problem(case.problem, reference_compatible=False)
    expected = case.improved or case.expected
    assert answer["outcome"] == expected.outcome, answer.get("error")
    assert expected.error in answer.get("error", "")
    if answer["outcome"] == "fit":
        assert check(case.problem, answer["node"], answer["results"], selector_matches(case.problem), NUMBERED) == []


@pytest.mark.parametrize("case", [with_id(case) for case in CASES if case.search_calls])
def test_the_search_takes_hardly_more_steps_than_the_reference(case: Case) -> None:
    problem = read_problem(case.problem)
    allocator = Allocator(problem.inventory, problem.features, Rules.reference())
    assert case.search_calls
    # Not the same unit: ours are devices that were tried, theirs are calls, one more per request and claim.
    assert allocator.allocate(problem.nodes[0], problem.claims).steps <= 1.1 * case.search_calls


@pytest.mark.spec("DA-9.interrupt")
@pytest.mark.parametrize("limits", [Limits(steps=3), Limits(give_up=lambda: True)], ids=["steps", "give up"])
def test_a_search_that_is_interrupted_says_so(limits: Limits) -> None:
    outcome = _hard_search(limits)
    assert isinstance(outcome, NoFit)
    assert outcome.is_exhausted
    assert "the search was given up" in outcome.reason


@pytest.mark.spec("DA-9.interrupt")
def test_a_search_that_is_not_interrupted_ends_with_an_answer() -> None:
    outcome = _hard_search(Limits())
    assert isinstance(outcome, NoFit)
    assert (outcome.is_exhausted, outcome.reason) == (False, "")


def _hard_search(limits: Limits) -> Outcome:
    """Four of 16 devices, all different, and then one that goes with none of them."""
    devices = [f"d{i} kind=many x=[y,y{i}]" for i in range(16)]
    short = {
        "case": "hard",
        "slices": [{"pool": "p1", "devices": [*devices, "last kind=one x=[z]"]}],
        "claims": [{"requests": ["r0 4 a kind=many", "r1 a kind=one"], "constraints": ["match x"]}],
    }
    problem = read_problem(expanded(short))
    allocator = Allocator(problem.inventory, problem.features, Rules.reference())
    return allocator.allocate(problem.nodes[0], problem.claims, limits)
