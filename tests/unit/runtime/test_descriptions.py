import json
from pathlib import Path

import pytest

from devlet.errors import NotCreated
from devlet.objects.documents import view
from devlet.objects.identifiers import ContainerName, PodUID
from devlet.objects.types.edits import DeviceNode
from devlet.objects.types.pod import Pod
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.registry import Registry
from devlet.runtime.containers import Config
from devlet.runtime.description import Description, Wanted
from devlet.runtime.descriptions import Descriptions

pytestmark = pytest.mark.anyio

MAIN = ContainerName("main")
GPU = Config(cdi_devices=("v/c=a",))


def wanted(config: Config | None = GPU, uid: str = "u1") -> Wanted:
    pod = view(Pod, {"metadata": {"uid": uid}, "spec": {"containers": [{"name": "main"}]}})
    return Wanted(pod, pod.spec.containers[0], config)


def write(folder: Path, value: str) -> None:
    device = {"name": "a", "containerEdits": {"env": [f"A={value}"]}}
    (folder / "x.json").write_text(json.dumps({"cdiVersion": "0.5.0", "kind": "v/c", "devices": [device]}))


def env(description: Description) -> list[str]:
    found: list[str] = description.added.get("process", {}).get("env", [])
    return found


class CountingCache(Cache):
    looks = 0

    def refresh(self) -> Registry:
        self.looks += 1
        return super().refresh()


def always(_: Wanted) -> bool:
    return True


def never(_: Wanted) -> bool:
    return False


async def test_what_is_made_is_of_this_moment_and_what_is_kept_stays(tmp_path: Path) -> None:
    descriptions = Descriptions(Cache([tmp_path]))
    write(tmp_path, "1")
    first = await descriptions.make(wanted())
    descriptions.keep(wanted(), first)
    write(tmp_path, "2")
    assert env(await descriptions.make(wanted())) == ["A=2"]
    assert descriptions.get(PodUID("u1"), MAIN) is first
    assert await descriptions.all([wanted()], lasting=always) == [first]
    descriptions.forget(PodUID("u1"))
    assert descriptions.get(PodUID("u1"), MAIN) is None


async def test_specs_are_looked_at_only_for_cdi_devices(tmp_path: Path) -> None:
    cache = CountingCache([tmp_path])
    descriptions = Descriptions(cache)
    write(tmp_path, "1")
    plain = Config(env=(("B", "2"),), devices=(DeviceNode("/dev/x", "/dev/null", "r"),))
    assert env(await descriptions.make(wanted(plain))) == ["B=2"]
    assert (await descriptions.make(wanted(None))).added == {}
    await descriptions.all([wanted(plain, "u2"), wanted(None, "u3")], lasting=never)
    assert cache.looks == 0
    assert env(await descriptions.make(wanted(Config(annotations=(("cdi.k8s.io/x", "v/c=a"),))))) == ["A=1"]
    assert cache.looks == 1


async def test_many_are_described_with_one_look(tmp_path: Path) -> None:
    cache = CountingCache([tmp_path])
    write(tmp_path, "1")
    found = await Descriptions(cache).all([wanted(uid=f"u{i}") for i in range(100)], lasting=never)
    assert ([env(each) for each in found], cache.looks) == ([["A=1"]] * 100, 1)


async def test_what_lasts_is_kept_and_the_rest_is_made_again(tmp_path: Path) -> None:
    descriptions = Descriptions(Cache([tmp_path]))
    write(tmp_path, "1")
    both = [wanted(uid="u1"), wanted(uid="u2")]
    await descriptions.all(both, lasting=lambda each: each.pod.uid == "u1")
    write(tmp_path, "2")
    assert [env(each) for each in await descriptions.all(both, lasting=never)] == [["A=1"], ["A=2"]]


async def test_what_was_started_while_others_were_described_is_shown_as_it_was_started(tmp_path: Path) -> None:
    descriptions = Descriptions(Cache([tmp_path]))
    write(tmp_path, "1")
    started = Description({"ociVersion": "x"})

    def lasting(each: Wanted) -> bool:
        descriptions.keep(each, started)
        return True

    assert await descriptions.all([wanted()], lasting=lasting) == [started]


async def test_the_error_says_where_specs_are_read_from(tmp_path: Path) -> None:
    with pytest.raises(NotCreated, match=f"v/c=a: no such device.*; CDI specs are read from {tmp_path}"):
        await Descriptions(Cache([tmp_path])).make(wanted())


async def test_one_that_cannot_be_made_says_why_and_is_tried_again(tmp_path: Path) -> None:
    descriptions = Descriptions(Cache([tmp_path]))
    (found,) = await descriptions.all([wanted()], lasting=always)
    assert found.oci is None
    assert found.notes == ("cannot be started: unresolvable CDI devices v/c=a (v/c=a: no such device)",)
    write(tmp_path, "1")
    assert env((await descriptions.all([wanted()], lasting=always))[0]) == ["A=1"]


async def test_without_specs_nothing_is_known_and_nothing_fails() -> None:
    descriptions = Descriptions(None)
    assert await descriptions.make(wanted()) == Description()
    assert await descriptions.all([wanted()], lasting=always) == [Description()]
    assert descriptions.get(PodUID("u1"), MAIN) is None
