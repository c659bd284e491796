"""Run a program that sees a node's root as /var/lib/kubelet, because the path is built into it.

The program gets its own mount namespace: nothing changes on the host. For users other than root, that requires a user
namespace, in which the program sees itself as root but has only its user's rights. A process can only do this to
itself, and only while it has a single thread. So it is done right before the process executes the program.

`python -m devlet.runtime.kubelet_paths ROOT PROGRAM ARGUMENT…` does both.
"""

import ctypes
import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from devlet.errors import DevletError, Forbidden, InvalidInput, NotFound

__all__ = ["KUBELET_ROOT", "enter", "execute", "missing_rights"]

KUBELET_ROOT = Path("/var/lib/kubelet")

# From sched.h and sys/mount.h.
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_BIND, _RECURSIVE, _SLAVE = 4096, 16384, 1 << 19

# A sysctl, the value that forbids user namespaces, and one that allows them.
_SWITCHES = (
    ("user/max_user_namespaces", "0", "10000"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
)


def enter(root: Path) -> None:
    """Mount `root` at /var/lib/kubelet for this process. Raise Forbidden if the kernel does not allow it."""
    try:
        found = root.stat()
        os.listdir(root)
    except OSError as e:
        raise InvalidInput(f"{root}: {e.strerror}; expected the root of a devlet") from e
    if not _is_kubelet_root(found):
        _show(root)


def execute(argv: Sequence[str]) -> NoReturn:
    """Execute the program. Raise NotFound if it does not exist, Forbidden if it cannot be run."""
    sys.stdout.flush()
    # Python ignores the signal, and the program would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(argv[0], tuple(argv))
    except (FileNotFoundError, NotADirectoryError) as e:
        raise NotFound(f"{argv[0]}: no such program") from e
    except (OSError, ValueError) as e:
        raise Forbidden(f"{argv[0]} cannot be run: {getattr(e, 'strerror', None) or e}") from e


def missing_rights(reason: str, sysctls: Path = Path("/proc/sys")) -> str:
    """Return why a mount namespace cannot be created, and what to do."""
    known = ((name, wrong, right) for name, wrong, right in _SWITCHES if _value(sysctls / name) == wrong)
    found = [f"sysctl {name.replace('/', '.')}={right}" for name, _, right in known]
    allow = (
        f"allow user namespaces ({', '.join(found)})"
        if found
        else "in a container, give it the capability SYS_ADMIN (docker run --cap-add SYS_ADMIN)"
    )
    return f"{KUBELET_ROOT} cannot be shown to the program: {reason}; run it as root, or {allow}"


def _is_kubelet_root(found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, KUBELET_ROOT.stat())
    except OSError:
        return False


def _show(root: Path) -> None:
    try:
        _unshare()
        # Later mounts of the host are visible here, but not the other way round.
        _mount("none", "/", _RECURSIVE | _SLAVE)
        with _opened(root) as source:
            if not KUBELET_ROOT.is_dir():
                _create_mount_point(KUBELET_ROOT)
            _mount(source, str(KUBELET_ROOT), _BIND | _RECURSIVE)
    except OSError as e:
        raise Forbidden(missing_rights(f"{e.filename}: {e.strerror}")) from e


def _unshare() -> None:
    user, group = os.geteuid(), os.getegid()
    try:
        _call("unshare", _NEW_MOUNTS)
    except PermissionError:
        _call("unshare", _NEW_MOUNTS | _NEW_USER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def _create_mount_point(folder: Path) -> None:
    """Create a directory to mount on: mount an empty file system over the parent, and everything from the parent in
    it."""
    parent = folder.parent
    if not parent.is_dir():
        raise InvalidInput(f"this host has no {parent}: create {folder} there")
    with _opened(parent) as before:
        names = sorted(os.listdir(before))
        _mount("tmpfs", str(parent), 0, kind="tmpfs", data="mode=755")
        for name in names:
            _carry_over(Path(before, name), parent / name)
        folder.mkdir(mode=0o700)


def _carry_over(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    target.mkdir() if source.is_dir() else target.touch()
    _mount(str(source), str(target), _BIND | _RECURSIVE)


@contextmanager
def _opened(folder: Path) -> Iterator[str]:
    """Yield a path that leads to the directory even after something is mounted over it. To be called in the new
    namespace: a directory that was opened in another one cannot be mounted."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _mount(source: str, target: str, flags: int, *, kind: str = "", data: str = "") -> None:
    texts = [os.fsencode(text) if text else None for text in (source, target, kind, data)]
    _call("mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3], about=f"mount {target}")


def _call(function: str, *arguments: object, about: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc[function](*arguments) != 0:
        number = ctypes.get_errno()
        text = "the limit on namespaces is reached" if number == errno.ENOSPC else os.strerror(number)
        raise OSError(number, text, about or function)


def _value(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _main(arguments: Sequence[str]) -> None:
    try:
        enter(Path(arguments[0]))
        execute(arguments[1:])
    except DevletError as e:
        sys.exit(f"error: {e}")


if __name__ == "__main__":
    _main(sys.argv[1:])
