import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devlet.node.reports import Report
from devlet.node.static_pods.directory import ManifestDirectory, Settings
from devlet.objects.identifiers import NodeName
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


def text(name: str, image: str = "x") -> str:
    spec = f"spec: {{containers: [{{name: main, image: {image}}}]}}"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, {spec}}}"


class Files:
    def __init__(self, folder: Path, settings: Settings = Settings()) -> None:
        self.folder = folder
        self.reports: list[Report] = []
        self.directory = ManifestDirectory(folder, NodeName("n1"), FakeClock(), self.reports.append, settings)

    def write(self, file: str, content: str) -> Path:
        self.folder.mkdir(exist_ok=True)
        (self.folder / file).write_text(content)
        return self.folder / file

    async def names(self) -> list[str]:
        return [pod.key[1].removesuffix("-n1") for pod in await self.directory.pods()]

    @property
    def problems(self) -> list[str]:
        return [each.message for each in self.reports]


@pytest.fixture
def files(root: Path) -> Iterator[Files]:
    made = Files(root / "pods")
    with made.directory:
        yield made


@pytest.mark.spec("KA-9.3m")
async def test_each_file_is_a_pod_but_hidden_files_directories_and_other_suffixes_are_ignored(files: Files) -> None:
    for name in ("b.yaml", "a.json", "c.yml"):
        files.write(name, text(name[0]))
    files.write(".hidden.yaml", text("hidden"))
    files.write("notes.txt", "nothing to run")
    (files.folder / "below").mkdir()
    (files.folder / "below" / "d.yaml").write_text(text("d"))
    (files.folder / "folder.yaml").mkdir()
    (files.folder / "link.yaml").symlink_to(files.write("target", text("linked")))
    (files.folder / "nowhere.yaml").symlink_to("missing")
    assert await files.names() == ["a", "b", "c", "linked"]
    assert files.problems == []


@pytest.mark.spec("KA-9.3n")
async def test_an_invalid_file_is_reported_once_and_does_not_affect_others(files: Files) -> None:
    files.write("good.yaml", text("good"))
    files.write("bad.yaml", "kind: Nonsense")
    for _ in range(3):
        assert await files.names() == ["good"]
    (problem,) = files.problems
    assert problem.startswith("static pod bad.yaml: not a pod") and files.reports[0].reason == "InvalidStaticPod"
    files.write("bad.yaml", text("mended"))
    assert await files.names() == ["mended", "good"]
    assert len(files.problems) == 1


async def test_a_pod_stays_while_its_file_is_invalid_until_the_file_is_removed(files: Files) -> None:
    path = files.write("a.yaml", text("a"))
    (before,) = await files.directory.pods()
    files.write("a.yaml", "half of a")
    assert await files.directory.pods() == [before] and len(files.problems) == 1
    files.write("a.yaml", text("a"))
    (again,) = await files.directory.pods()
    assert again.uid == before.uid
    path.unlink()
    assert await files.directory.pods() == []


async def test_an_empty_file_is_ignored(files: Files) -> None:
    files.write("a.yaml", "")
    assert await files.names() == [] and files.problems == []


async def test_of_two_files_with_the_same_pod_the_first_counts(files: Files) -> None:
    files.write("b.yaml", text("same", "second"))
    files.write("a.yaml", text("same", "first"))
    (pod,) = await files.directory.pods()
    assert pod.document["spec"]["containers"][0]["image"] == "first"
    assert files.problems == ["static pod b.yaml: the pod default/same-n1 is already in a.yaml"]


async def test_large_files_too_many_files_and_other_entries_are_refused(root: Path) -> None:
    files = Files(root / "pods", Settings(max_bytes=200, max_files=3))
    files.write("a.yaml", text("a"))
    files.write("b.yaml", text("b") + " " * 200)
    os.mkfifo(files.folder / "c.yaml")
    files.write("d.yaml", text("d"))
    assert await files.names() == ["a"]
    assert files.problems == [
        "static pod b.yaml: larger than 200 bytes",
        "static pod c.yaml: not a file",
        "static pod d.yaml: ignored: there are more than 3 files",
    ]


async def test_changes_are_noticed_in_a_directory_that_is_created_later(files: Files) -> None:
    async def until(*names: str) -> None:
        while True:
            await files.directory.changed()
            if await files.names() == list(names):
                return

    with deadline():
        await until()
        path = files.write("a.yaml", text("a"))
        await until("a")
        path.rename(files.folder / "b.yaml")
        files.write("c.yaml", text("c"))
        await until("a", "c")
        (files.folder / "c.yaml").unlink()
        await until("a")
