"""Pods that come and go by the dice: with devices of a plugin, with claims of their own or shared ones, with an
extended resource behind which there is a device class, some that were put on a node by hand, and some that can never
run. The same seed gives the same pods.

They are made for a driver with eight GPUs and a plugin with eight devices (`worlds`): few enough that pods wait
for each other all the time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from devlet.kit.dice import Dice
from devlet.objects.documents import Document
from devlet.objects.kinds import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from tests.support.workloads import DRIVER, claim, device_class, template, wish

__all__ = ["CLASS_RESOURCE", "DEVICES", "NAMESPACE", "PLUGIN_RESOURCE", "Guest", "Workload"]

NAMESPACE: Final = "default"
PLUGIN_RESOURCE: Final = "squat.ai/null"
CLASS_RESOURCE: Final = "example.com/gpu"  # the driver's devices, by another name
DEVICES: Final = 8  # of the driver, and as many of the plugin

SHARED: Final = ("shared-0", "shared-1", "shared-2")
_INDEX: Final = f"device.attributes['{DRIVER}'].index"
_FITTING: Final = {
    "one": (wish(),),
    "two": (wish(count=2),),
    "two-requests": (wish("first"), wish("second")),
    "low": (wish(select=f"{_INDEX} < 3"),),
    "high": (wish(select=f"{_INDEX} >= 6"),),
}
_HOPELESS: Final = {
    "too-many": (wish(count=DEVICES + 1),),
    "contradictory": (wish(select=f"{_INDEX} < 3 && {_INDEX} > 5"),),
    "no-such-class": (wish(device_class="nowhere.example.com"),),
}


@dataclass(frozen=True, slots=True)
class Guest:
    """A pod; it is deleted after `stays` seconds, whatever it does by then, and `forced` without a word to its node."""

    name: str
    document: Document
    stays: float
    forced: bool


class Workload:
    """`forced` is how likely a pod goes by force; some pods are put on one of the `nodes`."""

    def __init__(
        self, seed: int, *, nodes: Sequence[str] = (), scheduler_name: str = "", forced: float = 0.0, stays: int = 20
    ) -> None:
        self._dice = Dice(seed)
        self._numbers = count()
        self._nodes = nodes
        self._scheduler_name = scheduler_name
        self._forced = forced
        self._stays = stays

    def objects(self) -> list[tuple[Resource, Document]]:
        """What has to be there before the first pod."""
        templates = {**_FITTING, **_HOPELESS}
        return [
            (DEVICE_CLASSES, device_class(extended=CLASS_RESOURCE)),
            *((RESOURCE_CLAIM_TEMPLATES, template(name, *requests)) for name, requests in templates.items()),
            (RESOURCE_CLAIM_TEMPLATES, _choice()),
            *((RESOURCE_CLAIMS, claim(name, *_FITTING["one"])) for name in SHARED),
        ]

    def next(self) -> Guest:
        """The next pod."""
        dice, name = self._dice, f"pod-{next(self._numbers):04}"
        kind = dice.pick(_KINDS)
        spec = kind(dice)
        if kind is _placed and self._nodes:
            spec["nodeName"] = dice.pick(self._nodes)
        ends = dice.chance(0.4)
        annotations = {"devlet.dev/run-for": f"{dice.number(1, 40) * 100}ms"} if ends else {}
        document: Document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
            "spec": {"restartPolicy": "Never" if ends or dice.chance(0.5) else "Always", **spec},
        }
        if self._scheduler_name:
            document["spec"]["schedulerName"] = self._scheduler_name
        stays = dice.number(10, self._stays * 20) / 10
        return Guest(name, document, stays, dice.chance(self._forced))


def _choice() -> Document:
    """Four devices, or else one."""
    either = [
        {"name": "many", "deviceClassName": DRIVER, "count": 4},
        {"name": "few", "deviceClassName": DRIVER, "count": 1},
    ]
    return template("choice", {"name": "gpu", "firstAvailable": either})


# Kinds of pods


def _plain(dice: Dice) -> Document:
    return _spec([], {PLUGIN_RESOURCE: dice.number(1, 3)})


def _templates(dice: Dice) -> Document:
    names = dice.some([*_FITTING, "choice"], 1, 2)
    return _spec([{"resourceClaimTemplateName": name} for name in names])


def _one(_: Dice) -> Document:
    return _spec([{"resourceClaimTemplateName": "one"}])


def _shared(dice: Dice) -> Document:
    return _spec([{"resourceClaimName": name} for name in dice.some(SHARED, 1, 2)])


def _everything(dice: Dice) -> Document:
    entries = [{"resourceClaimTemplateName": "one"}, {"resourceClaimName": dice.pick(SHARED)}]
    return _spec(entries, {PLUGIN_RESOURCE: 1})


def _extended(dice: Dice) -> Document:
    entries = [{"resourceClaimTemplateName": "one"}] if dice.chance(0.3) else []
    return _spec(entries, {CLASS_RESOURCE: dice.number(1, 2)})


def _placed(dice: Dice) -> Document:
    return _spec([{"resourceClaimTemplateName": dice.pick(("one", "two"))}])


def _hopeless(dice: Dice) -> Document:
    kind = dice.number(0, 6)
    if kind < 3:
        return _spec([{"resourceClaimTemplateName": list(_HOPELESS)[kind]}])
    if kind == 3:
        return _spec([], {PLUGIN_RESOURCE: DEVICES + 1})
    if kind == 4:
        return _spec([{"resourceClaimTemplateName": "one"}]) | {"nodeSelector": {"place": "nowhere"}}
    if kind == 5:
        return _spec([{"resourceClaimTemplateName": "no-such-template"}])
    return _spec([{"resourceClaimName": "no-such-claim"}])


_KINDS: Final = (
    _plain, _plain, _plain, _templates, _templates, _one, _one, _shared, _everything, _extended, _placed, _hopeless
)  # fmt: skip


def _spec(entries: Sequence[Document], limits: Mapping[str, int] = {}) -> Document:
    """With a container that uses all of it, and one that uses nothing."""
    claims = [{"name": f"c{i}", **entry} for i, entry in enumerate(entries)]
    resources: dict[str, Any] = {"claims": [{"name": each["name"]} for each in claims]}
    if limits:
        resources["limits"] = {name: str(amount) for name, amount in limits.items()}
    containers = [{"name": "main", "image": "x", "resources": resources}, {"name": "idle", "image": "x"}]
    return {"containers": containers, "resourceClaims": claims, "terminationGracePeriodSeconds": 1}
