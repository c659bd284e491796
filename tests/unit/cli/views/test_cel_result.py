from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.published import Published
from devlet.cli.cel_eval import Evaluated, Evaluator
from devlet.cli.cel_input import Specimen
from devlet.cli.cel_release import releases
from devlet.cli.views.cel_result import lines, side_by_side
from devlet.objects.documents import view
from devlet.objects.types.slice import Device

D = 'device.attributes["gpu.example.com"]'


def evaluated(expression: str, count: int, version: str = "", *, trace: bool = False) -> Evaluated:
    specimens = []
    for index in range(count):
        attributes = {"index": {"int": index}} | ({"model": {"string": "a"}} if index % 2 else {})
        device = view(Device, {"name": f"gpu-{index}", "attributes": attributes})
        specimens.append(Specimen("gpu.example.com", "n1", device.name, "n1", DeviceInput("gpu.example.com", device)))
    (release,) = releases(version, "", stored=False)
    return Evaluator(specimens, Published(s.input for s in specimens), trace=trace).evaluate(expression, release)


def test_few_devices_are_a_table() -> None:
    assert list(lines(evaluated(f"{D}.index == 1", 2), tree=False, wide=False)) == [
        "DEVICE                     RESULT   COST",
        "gpu.example.com/n1/gpu-0   false    5",
        "gpu.example.com/n1/gpu-1   true     5",
        "1 of 2 devices match",
        "estimated cost: at most 5, the limit is 1,000,000",
        "attribute gpu.example.com/index exists in 2 of 2 devices",
    ]


def test_many_devices_are_counted_unless_all_are_asked_for() -> None:
    found = evaluated(f'{D}.model == "a"', 40)
    short = list(lines(found, tree=False, wide=False))
    assert short[:3] == [
        "DRIVER            DEVICES   RESULT   COST   FOR EXAMPLE                ERROR",
        "gpu.example.com   20        error    5      gpu.example.com/n1/gpu-0   no such key: model",
        "gpu.example.com   20        true     5      gpu.example.com/n1/gpu-1   <none>",
    ]
    assert "20 of 40 devices match, 20 cannot be evaluated" in short
    assert len(list(lines(found, tree=False, wide=True))) > 40


def test_a_tree_shows_the_error_with_its_place() -> None:
    shown = list(lines(evaluated(f'{D}.model == "a"', 1, trace=True), tree=True, wide=False))
    assert shown[0] == "gpu.example.com/n1/gpu-0: error, cost 5"
    assert "ERROR: <input>:1:37: no such key: model" in shown
    assert shown[-1] == "attribute gpu.example.com/model exists in 0 of 1 device"


def test_too_much_cost_is_said() -> None:
    shown = list(lines(evaluated(f"type({D}.index) == int", 1), tree=False, wide=False))
    assert any(line.endswith("the limit is 1,000,000: an API server rejects it") for line in shown)


def test_without_devices_it_says_so() -> None:
    assert "there are no devices" in list(lines(evaluated("true", 0), tree=False, wide=False))


def test_releases_are_side_by_side() -> None:
    expression = 'semver("v1.2", true).major() == 1'
    shown = list(side_by_side([evaluated(expression, 2, version) for version in ("1.33", "1.34")]))
    assert shown[:4] == [
        "KUBERNETES   COMPILES   COST   TRUE   FALSE   ERROR",
        "1.33         no         -      -      -       -",
        "1.34         yes        3      2      0       0",
        "in 1.33:",
    ]
    assert "found no matching overload for 'semver'" in shown[4]
