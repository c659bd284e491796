"""Write a root as an earlier devlet leaves it behind when it is killed: `python -m tools.make_upgrade_root COMMIT OUT`.

    python -m tools.make_upgrade_root 1e170c8 tests/vectors/upgrade/0.1.tar.xz

The commit's own code runs. Its sources come from git. Its dependencies are those of the present environment if its lock
is the present one, else the script makes an environment from its lock. `tools.upgrade_life` says what happens in the
root. The archive has the root as `root/`, without sockets, and `kept.json`, which describes what a later devlet must
keep. tests/flows/test_upgrade.py starts the present devlet on each archive in tests/vectors/upgrade.

Keys and tokens in the archive belong to a cluster that exists nowhere else. Nothing in it identifies this machine.
"""

import argparse
import hashlib
import io
import json
import lzma
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
from tools import upgrade_life
from tools.upgrade_life import Life, Old

from devlet.auth import kubeconfigs
from devlet.objects.documents import Document
from devlet.testing.node_api import NodeApi

PROJECT = Path(__file__).resolve().parents[1]
LOCK = "requirements.lock"
_LARGEST = 300_000  # bytes of an archive: it stays in the repository for good
_LEFT_OUT = ("devlet.lock",)  # has a process id


def main() -> int:
    parser = argparse.ArgumentParser(description="Write a root as an earlier devlet leaves it behind.")
    parser.add_argument("commit", help="of the earlier devlet")
    parser.add_argument("out", type=Path, metavar="OUT", help="the archive: NAME.tar.xz")
    given = parser.parse_args()
    commit = _git("rev-parse", f"{given.commit}^{{commit}}").decode().strip()
    with tempfile.TemporaryDirectory(prefix="dv") as place:
        scratch, root = Path(place) / "s", Path(place) / "r"
        scratch.mkdir()
        root.mkdir(mode=0o700)
        kept = anyio.run(_lives, _check_out(commit, Path(place) / "old"), root, scratch)
        content = pack(root, {"commit": commit, **kept})
        if found := private(root, (place, socket.gethostname(), str(PROJECT))):
            print(f"not written: {', '.join(found)}", file=sys.stderr)
            return 1
    if len(content) > _LARGEST:
        print(f"not written: the archive has {len(content)} bytes, more than {_LARGEST}", file=sys.stderr)
        return 1
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_bytes(content)
    print(f"{given.out}: {len(content)} bytes, {len(kept['objects'])} objects")
    return 0


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout


def _check_out(commit: str, tree: Path) -> Old:
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
        archive.extractall(tree, filter="data")
    if (tree / LOCK).read_bytes() == (PROJECT / LOCK).read_bytes():
        return Old(Path(sys.executable), tree / "src")
    subprocess.run([sys.executable, "-m", "tools.bootstrap", "run"], cwd=tree, check=True)
    return Old(tree / ".venv" / "bin" / "python", tree / "src")


async def _lives(old: Old, root: Path, scratch: Path) -> Document:
    upgrade_life.prepare(root)
    life = Life(old, root, scratch)
    async with life.running():
        await upgrade_life.first_life(life)
    life = Life(old, root, scratch)
    upgrade_life.break_drivers(life)
    async with life.running():
        known = await upgrade_life.second_life(life)
        kept = {**await describe(life.api), **known}
        await life.kill()
    return kept


async def describe(api: NodeApi) -> Document:
    """Return what a later devlet must still have."""
    held = {
        name: {resource: sorted(ids) for resource, ids in each.items()} for name, each in (await api.held()).items()
    }
    pods = await api.pods()
    containers = {name: await api.environment(name) for name, each in pods.items() if _runs(each)}
    kubeconfig = kubeconfigs.read(api.root / "kubeconfig")
    return {
        "server": kubeconfig["clusters"][0]["cluster"]["server"],
        "authority": hashlib.sha256((api.root / "pki" / "ca.crt").read_bytes()).hexdigest(),
        "administrator": kubeconfig["users"][0]["user"]["token"],
        "held": held,
        "environment": containers,
        "prepared": await api.prepared(),
        "objects": [each async for each in _objects(api)],
    }


def _runs(pod: Document) -> bool:
    return all("running" in each["state"] for each in pod["status"].get("containerStatuses") or [{"state": {}}])


async def _objects(api: NodeApi) -> AsyncIterator[Document]:
    """Yield every object of every kind that the API stores, as `{path, object}`."""
    for version in await _versions(api):
        for kind in (await api.call("GET", version))["resources"]:
            if "/" in kind["name"] or "list" not in kind["verbs"]:
                continue
            for each in await api.items(f"{version}/{kind['name']}"):
                namespace = each["metadata"].get("namespace")
                where = f"{version}/namespaces/{namespace}" if namespace else version
                yield {"path": f"{where}/{kind['name']}/{each['metadata']['name']}", "object": each}


async def _versions(api: NodeApi) -> list[str]:
    """Return the path of each group's preferred version. devlet's own group shows the node, and is not stored."""
    groups = (await api.call("GET", "/apis"))["groups"]
    preferred = [each["preferredVersion"]["groupVersion"] for each in groups if not each["name"].endswith("devlet.dev")]
    return ["/api/v1", *(f"/apis/{each}" for each in preferred)]


def pack(root: Path, kept: Document) -> bytes:
    """Return the archive. The same content always gives the same bytes: it has no times, owners or directory order."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, "kept.json", 0o644, json.dumps(kept, indent=1, sort_keys=True).encode())
        for path in _files(root):
            _add(archive, f"root/{path.relative_to(root)}", path.stat().st_mode & 0o777, path.read_bytes())
    return lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def _files(root: Path) -> Iterator[Path]:
    """Yield the regular files, in order. Directories are created when they are unpacked, and sockets are left out."""
    return (path for path in sorted(root.rglob("*")) if path.is_file() and path.name not in _LEFT_OUT)


def _add(archive: tarfile.TarFile, name: str, mode: int, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def private(root: Path, words: tuple[str, ...]) -> list[str]:
    """Return a line for each file that contains one of the words, which identify this machine."""
    wanted = [word.encode() for word in (*words, os.uname().release)]
    return [
        f"{path.relative_to(root)} contains {word.decode()!r}"
        for path in _files(root)
        for word in wanted
        if word in path.read_bytes()
    ]


if __name__ == "__main__":
    sys.exit(main())
