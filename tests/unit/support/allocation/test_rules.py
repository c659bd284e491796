from devlet.errors import InvalidSelector
from devlet.objects.documents import Document
from tests.support.allocation.rules import IMPROVED, REFERENCE, Given, Want, World, requests_of
from tests.support.allocation.shorthand import problem


def every(_expression: str, _device: Document, _driver: str) -> bool:
    return True


def world(*devices: str, request: str = "r0 a", allocated: list[str] | None = None, reference: bool = False) -> World:
    short = {
        "case": "test",
        "slices": [{"pool": "p1", "devices": list(devices)}],
        "allocated": allocated or [],
        "claims": [[request]],
    }
    return World(problem(short), "node-1", every, REFERENCE if reference else IMPROVED)


def want(world: World) -> Want:
    ((name, ((ref, document),)),) = requests_of(world.claims[0])
    return Want(0, name, ref, document)


def why_not(world: World) -> list[str]:
    (offer,) = world.offers.values()
    return list(world.unusable(want(world), offer))


def test_alternatives_are_named_after_their_request() -> None:
    claim = problem({"case": "test", "claims": [["r0 a", {"r1": ["s0 a", "s1 2 a"]}]]})["claims"][0]
    assert [(name, [ref for ref, _ in alternatives]) for name, alternatives in requests_of(claim)] == [
        ("r0", ["r0"]),
        ("r1", ["r1/s0", "r1/s1"]),
    ]


def test_a_selector_that_fails_selects_nothing() -> None:
    def failing(_expression: str, _device: Document, _driver: str) -> bool:
        raise InvalidSelector("no such key")

    short = {"case": "test", "slices": [{"pool": "p1", "devices": ["d1"]}], "claims": [["r0 a"]]}
    assert why_not(World(problem(short), "node-1", failing, IMPROVED)) == [
        "is not selected by class and request, or not on this node"
    ]


def test_admin_access_needs_no_capacity_with_improvements() -> None:
    device, request, allocated = "d1 lanes:4 shared", "r0 a admin lanes:1", ["p1/d1 shared lanes:4"]
    assert why_not(world(device, request=request, allocated=allocated)) == []
    full = world(device, request=request, allocated=allocated, reference=True)
    (offer,) = full.offers.values()
    assert full.conflicts([Given(want(full), offer)]) == ["a.example.com/p1/d1: 5 of lanes are consumed, there are 4"]


def test_negative_amounts_are_refused_with_improvements() -> None:
    assert why_not(world("d1 lanes:4 shared", request="r0 a lanes:-1")) == ["negative amount of lanes"]
    assert why_not(world("d1 lanes:4 shared", request="r0 a lanes:-1", reference=True)) == []


def test_capacity_names_may_carry_the_driver_with_improvements() -> None:
    request = "r0 a a.example.com/lanes:1"
    assert why_not(world("d1 lanes:4", request=request)) == []
    assert why_not(world("d1 lanes:4", request=request, reference=True)) == ["has no capacity a.example.com/lanes"]


def test_the_reference_forgets_values_of_requests_with_several_devices() -> None:
    short = {
        "case": "test",
        "slices": [{"pool": "p1", "devices": ["d1 x=a", "d2 x=b", "d3 x=a"]}],
        "claims": [{"requests": ["r0 3 a"], "constraints": ["distinct x"]}],
    }
    for rules, wrong in ((IMPROVED, ["devices are not distinct in a.example.com/x"]), (REFERENCE, [])):
        here = World(problem(short), "node-1", every, rules)
        given = [Given(want(here), offer) for offer in here.offers.values()]
        assert list(here.constraints(here.claims[0], given)) == wrong


def test_a_shared_device_uses_its_counters_once() -> None:
    short = {
        "case": "test",
        "slices": [{"pool": "p1", "devices": ["d1 shared set1.n-=3"]}, {"pool": "p1", "counters": {"set1": {"n": 4}}}],
        "claims": [["r0 a"], ["r0 a"]],
    }
    here = World(problem(short), "node-1", every, IMPROVED)
    (offer,) = here.offers.values()
    assert here.conflicts([Given(want(here), offer), Given(want(here), offer)]) == []
