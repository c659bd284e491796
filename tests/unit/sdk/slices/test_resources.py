from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.validation.slice import check
from devlet.sdk.slices.resources import WantedPool, wanted
from devlet.sdk.values import Capacity, Device, Pool, Taint, Version

DRIVER = "gpu.example.com"


def one(pool: Pool, node: str = "n") -> WantedPool:
    return wanted({"p": pool}, DRIVER, node)["p"]


def device(**members: Any) -> Document:
    (made,) = one(Pool([Device("d", **members)], counters={"s": {"c": 4}})).slices[1]["devices"]
    return dict(made)


def problem(*devices: Device, node: str = "n", **pool: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        wanted({"p": Pool(devices, **pool)}, DRIVER, node)
    return str(caught.value)


def sizes(pool: WantedPool) -> list[int]:
    return [len(each.get("devices", ())) for each in pool.slices]


def many(count: int, **members: Any) -> list[Device]:
    return [Device(f"d{i}", **members) for i in range(count)]


def test_values_become_what_the_api_has_for_them() -> None:
    attributes: dict[str, Any] = {
        "model": "a100",
        "cores": 4,
        "fast": True,
        "driver": Version("1.2.3"),
        "links": ["a", "b"],
        "ports": (1, 2),
        "flags": [True],
        "apis": [Version("1.0.0")],
        "other.com/numa": 0,
    }
    assert device(attributes=attributes)["attributes"] == {
        "model": {"string": "a100"},
        "cores": {"int": 4},
        "fast": {"bool": True},
        "driver": {"version": "1.2.3"},
        "links": {"strings": ["a", "b"]},
        "ports": {"ints": [1, 2]},
        "flags": {"bools": [True]},
        "apis": {"versions": ["1.0.0"]},
        "other.com/numa": {"int": 0},
    }


def test_amounts_may_be_numbers_or_texts_and_have_policies() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    made = device(
        capacity={"memory": "40Gi", "slots": 7, "shared": Capacity("2Gi", policy)},
        consumes={"s": {"c": 2}},
        allow_multiple_allocations=True,
    )
    assert made["capacity"] == {
        "memory": {"value": "40Gi"},
        "slots": {"value": "7"},
        "shared": {"value": "2Gi", "requestPolicy": policy},
    }
    assert made["consumesCounters"] == [{"counterSet": "s", "counters": {"c": {"value": "2"}}}]
    assert made["allowMultipleAllocations"] is True


def test_taints_and_whatever_else_the_api_knows_are_passed_on() -> None:
    made = device(
        taints=[Taint("k", value="v"), Taint("x", "NoExecute")], more={"bindsToNode": True, "future": {"a": 1}}
    )
    assert made["taints"] == [
        {"key": "k", "value": "v", "effect": "NoSchedule"},
        {"key": "x", "effect": "NoExecute"},
    ]
    assert made["bindsToNode"] is True and made["future"] == {"a": 1}


def test_what_the_api_does_not_know_is_named_with_what_was_meant_perhaps() -> None:
    policy = Capacity("4Gi", {"default": "1Gi", "validRnge": {"min": "1Gi"}})
    odd = Device("d", {}, {"memory": policy}, allow_multiple_allocations=True, more={"bindsToNod": True, "future": 1})
    found = one(Pool([odd, Device("e")]))
    assert found.unknown == (
        "pool p, device d: capacity.memory.requestPolicy.validRnge (did you mean validRange?)",
        "pool p, device d: bindsToNod (did you mean bindsToNode?)",
        "pool p, device d: future",
    )
    terms = [{"matchExpressions": [{"key": "k", "operator": "Exists"}], "matchField": []}]
    assert one(Pool(node_selector={"nodeSelectorTerms": terms}), node="").unknown == (
        "pool p: nodeSelector: nodeSelectorTerms[0].matchField (did you mean matchFields?)",
    )
    assert one(Pool([Device("d", more={"bindsToNode": True})])).unknown == ()


@pytest.mark.spec("DN-6.2b")
def test_times_of_taints_have_whole_seconds() -> None:
    taints = [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T01:00:00.7+01:00"}]
    assert device(more={"taints": taints})["taints"][0]["timeAdded"] == "2026-01-01T00:00:00Z"


@pytest.mark.spec("DN-6.2b")
def test_what_is_wanted_shares_nothing_with_what_was_given() -> None:
    more: Document = {"bindingConditions": ["a"], "bindingFailureConditions": ["b"]}
    attributes: dict[str, Any] = {"x": ["a"]}
    found = one(Pool([Device("d", attributes, more=more)]))
    before = msgspec.json.encode(found)
    attributes["x"].append("b")
    more["bindingConditions"].append("c")
    assert msgspec.json.encode(found) == before


@pytest.mark.spec("DN-6.1a")
@pytest.mark.parametrize(
    ("count", "expected"), [(0, [0]), (1, [1]), (128, [128]), (129, [128, 1]), (1000, [128] * 7 + [104])]
)
def test_a_slice_has_at_most_128_devices(count: int, expected: list[int]) -> None:
    assert sizes(one(Pool(many(count)))) == expected


@pytest.mark.spec("DN-6.1a")
@pytest.mark.parametrize(
    "members",
    [{"taints": [Taint("k")]}, {"attributes": {"x": ["a"]}}, {"more": {"taints": [{"key": "k", "effect": "None"}]}}],
)
def test_a_slice_with_a_device_that_uses_more_has_at_most_64(members: Any) -> None:
    assert sizes(one(Pool(many(130, **members)))) == [64, 64, 2]


@pytest.mark.spec("DN-6.1a")
def test_the_smaller_limit_holds_only_for_slices_that_need_it() -> None:
    plain, special = many(100), Device("special", taints=[Taint("k")])
    assert sizes(one(Pool([*plain, special]))) == [100, 1]
    assert sizes(one(Pool([special, *plain]))) == [64, 37]
    assert sizes(one(Pool([*plain[:60], special, *plain[60:]]))) == [64, 37]


@pytest.mark.spec("DN-6.1b")
def test_counters_have_slices_of_their_own_before_the_devices() -> None:
    counters = {f"s{i}": {"c": 1} for i in range(9)}
    found = one(Pool(many(2), counters=counters))
    assert [len(each.get("sharedCounters", ())) for each in found.slices] == [8, 1, 0]
    assert sizes(found) == [0, 0, 2]
    assert found.slices[1]["sharedCounters"] == [{"name": "s8", "counters": {"c": {"value": "1"}}}]


@pytest.mark.spec("DN-6.1c")
def test_an_empty_pool_is_one_empty_slice() -> None:
    assert one(Pool()).slices == ({},)


@pytest.mark.spec("DN-10.P14")
def test_pools_without_a_node_say_where_they_are() -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}
    assert one(Pool(node_selector=selector), "").slices == ({"nodeSelector": selector},)
    assert one(Pool(all_nodes=True), "").slices == ({"allNodes": True},)
    devices = [Device("a", more={"nodeName": "n1"}), Device("b", more={"allNodes": True})]
    assert one(Pool(devices), "").slices[0]["perDeviceNodeSelection"] is True


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("exactly one of", lambda: problem(node="")),
        ("multiple fields are set", lambda: problem(node="", all_nodes=True, node_selector={"nodeSelectorTerms": []})),
        ("`single_pool`", lambda: problem(all_nodes=True)),
        (
            "pool p, device d: exactly one of",
            lambda: problem(Device("d", more={"allNodes": True}), Device("e"), node=""),
        ),
    ],
)
@pytest.mark.spec("DN-6.1d")
def test_devices_are_selected_in_exactly_one_way(text: str, make: Callable[[], str]) -> None:
    assert text.removeprefix("pool p, device d: ") in make()


@pytest.mark.spec("DN-10.P16")
def test_mistakes_within_a_pool_are_reported_together() -> None:
    text = problem(
        Device("a"),
        Device("a"),
        Device("b", consumes={"none": {"c": 1}}),
        Device("c", consumes={"s": {"none": 1}}),
        counters={"s": {"c": 1}},
    )
    assert text.split("; ") == [
        'pool p: duplicate device "a"',
        'pool p, device b: counter set "none" is not in the pool',
        'pool p, device c: counter "none" is not in counter set "s"',
    ]


@pytest.mark.spec("DN-10.P16")
def test_a_device_in_two_slices_is_a_duplicate() -> None:
    assert 'duplicate device "d0"' in problem(*many(200), Device("d0"))


LONG = "x" * 65


@pytest.mark.spec("DN-6.1e")
@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"attributes": {f"a{i}": 1 for i in range(33)}}, "pool p, device d: Invalid value: 33: .* must not exceed 32"),
        ({"attributes": {"a": [1] * 49}}, "pool p, device d: Invalid value: 49: .* must not exceed 48"),
        ({"attributes": {"a": LONG}}, r"pool p, device d: attributes\[a\].string: Too long: .* 64 bytes"),
        ({"attributes": {"x" * 33: 1}}, "pool p, device d: attributes: .*32"),
        ({"attributes": {f"{'d' * 64}/a": 1}}, "pool p, device d: attributes: .*63"),
        ({"attributes": {"a": Version("one")}}, r"pool p, device d: attributes\[a\].version: .* semver"),
        ({"attributes": {"a": 1.5}}, "pool p, device d: attribute a: 1.5 is not a string"),
        ({"attributes": {"a": []}}, r"pool p, device d: attribute a: \[\] is not a list"),
        ({"attributes": {"a": [1, "b"]}}, "pool p, device d: attribute a: .* of one type"),
        ({"attributes": {"a": 1 << 64}}, "pool p, device d: .*int64"),
        ({"capacity": {"m": "lots"}}, "pool p, device d: .*quantit"),
        ({"capacity": {"m": True}}, "pool p, device d: m: True is not a quantity"),
        ({"capacity": {"m": Capacity(1, {"default": "1"})}}, r"device d: capacity\[m\].requestPolicy: .*allowMultiple"),
        ({"taints": [Taint(f"k{i}") for i in range(17)]}, "pool p, device d: taints: Too many: 17: .* 16"),
        ({"taints": [Taint("k", "Never")]}, r"pool p, device d: taints\[0\].effect: Unsupported value"),
        ({"more": {"bindingConditions": list("abcde")}}, "pool p, device d: bindingConditions: Too many: 5: .* 4"),
        ({"taints": ["x"]}, r"pool p, device d: taints\[0\]: Expected .*, got `str`"),
        ({"taints": Taint("k")}, "pool p, device d: taints: Expected `array`, got `Taint`"),
        ({"taints": [Taint(cast(str, 7))]}, r"pool p, device d: taints\[0\].key: Expected `str`, got `int`"),
        ({"attributes": ["color"]}, r"pool p, device d: attributes: \['color'\] is not a mapping"),
        ({"capacity": "1Gi"}, "pool p, device d: capacity: '1Gi' is not a mapping"),
        ({"consumes": {"s": 1}}, "pool p, device d: s: 1 is not a mapping"),
        ({"attributes": {"x": b"abc"}}, "pool p, device d: attribute x: b'abc' is not a string, integer"),
        ({"attributes": {"x": bytearray(b"a")}}, "pool p, device d: attribute x: .* is not a string, integer"),
        ({"more": ["x"]}, r"pool p, device d: more: \['x'\] is not a mapping"),
        ({"more": {"taints": "none"}}, "pool p, device d: .*taints"),
        ({"more": {"name": "e"}}, "pool p, device d: name is given twice"),
        ({"consumes": {f"s{i}": {"c": 1} for i in range(3)}}, "device d: consumesCounters: Too many: 3: .* 2"),
    ],
)
def test_errors_name_the_device_the_field_and_the_limit(members: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        wanted({"p": Pool([Device("d", **members)], counters={f"s{i}": {"c": 1} for i in range(3)})}, DRIVER, "n")


@pytest.mark.spec("DN-6.1e")
@pytest.mark.parametrize(
    ("counters", "text"),
    [
        ({"s": {f"c{i}": 1 for i in range(33)}}, "pool p, counter set s: counters: Too many: 33: .* 32"),
        ({"s": {}}, "pool p, counter set s: counters: Required value"),
        ({"s": {"c": "much"}}, "pool p, counter set s: .*quantit"),
    ],
)
def test_errors_of_counters_name_their_set(counters: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        one(Pool(counters=counters))


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"counters": [1]}, r"pool p: counters: \[1\] is not a mapping"),
        ({"generation": "x"}, "pool p: generation: Expected `int`, got `str`"),
        ({"node_selector": [1]}, "pool p: nodeSelector: .*"),
    ],
)
def test_members_of_a_pool_have_their_types(members: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        one(Pool(**members))


@pytest.mark.spec("DN-6.1e")
@pytest.mark.parametrize(
    ("pool", "driver", "text"),
    [("Pool!", DRIVER, "spec.pool.name"), ("p" * 254, DRIVER, "253"), ("p", "d" * 64, "spec.driver: Too long: .* 63")],
)
def test_names_of_pool_and_driver_are_checked(pool: str, driver: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        wanted({pool: Pool()}, driver, "n")


def test_a_text_names_ten_problems_and_how_many_more_there_are() -> None:
    text = problem(*many(30, attributes={"x": LONG}))
    assert text.count("Too long") == 10 and text.endswith("and 1 more")


@given(st.lists(st.tuples(st.integers(1, 150), st.booleans()), max_size=6), st.integers(0, 20))
def test_slices_keep_the_limits_and_the_order(runs: list[tuple[int, bool]], sets: int) -> None:
    kinds = [special for count, special in runs for _ in range(count)]
    devices = [Device(f"d{i}", taints=[Taint("k")] if special else ()) for i, special in enumerate(kinds)]
    found = one(Pool(devices, counters={f"s{i}": {"c": 1} for i in range(sets)}))
    assert [d["name"] for each in found.slices for d in each.get("devices", ())] == [d.name for d in devices]
    for each in found.slices:
        spec = {"driver": DRIVER, "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n", **each}
        assert not list(check({"spec": spec}, None))
    assert sum(1 for each in found.slices if not each) == (not devices and not sets)
