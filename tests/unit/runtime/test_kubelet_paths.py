"""These tests run in child processes, because a mount namespace cannot be left."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from devlet.runtime.kubelet_paths import KUBELET_ROOT, missing_rights

AS_KUBELET = [sys.executable, "-m", "devlet.runtime.kubelet_paths"]
NOBODY = 65534


# The interpreter may be out of reach for that user, so it is started before. Who has changed their user may not write
# to /proc/self, until they are "dumpable" again, as after an exec.
AS_NOBODY = f"""
import ctypes, os, sys
from pathlib import Path
from devlet.runtime import kubelet_paths
os.setgroups([])
os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
ctypes.CDLL(None).prctl(4, 1)
kubelet_paths.enter(Path(sys.argv[1]))
kubelet_paths.execute(sys.argv[2:])
"""


def run(root: Path, *argv: str, command: Sequence[str] = AS_KUBELET) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*command, str(root), *argv], capture_output=True, text=True, timeout=120)


def sh(root: Path, script: str, command: Sequence[str] = AS_KUBELET) -> str:
    done = run(root, "sh", "-c", script, command=command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def works(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(autouse=True)
def allowed() -> None:
    if not works("unshare", "--mount", "true") and not works("unshare", "--mount", "--map-root-user", "true"):
        pytest.skip("this kernel allows no mount namespaces here")


def test_the_program_sees_the_root_in_the_kubelets_directory(root: Path) -> None:
    (root / "device-plugins").mkdir()
    assert sh(root, "ls /var/lib/kubelet; echo made > /var/lib/kubelet/here") == "device-plugins\n"
    assert (root / "here").read_text() == "made\n"


def test_the_host_is_not_changed(root: Path) -> None:
    mounts, existed = Path("/proc/self/mounts").read_text(), KUBELET_ROOT.exists()
    sh(root, "ls /var/lib/kubelet")
    assert (Path("/proc/self/mounts").read_text(), KUBELET_ROOT.exists()) == (mounts, existed)


def test_everything_else_below_var_lib_remains_visible(root: Path) -> None:
    before = {name: (Path("/var/lib") / name).lstat().st_ino for name in os.listdir("/var/lib")}
    links = {name for name in before if (Path("/var/lib") / name).is_symlink()}
    seen = dict(line.split(maxsplit=1)[::-1] for line in sh(root, "ls -1Ai /var/lib").splitlines())
    assert set(seen) == {*before, "kubelet"}
    same = before.keys() - links - {"kubelet"}
    assert {name: int(seen[name]) for name in same} == {name: before[name] for name in same}
    assert all(sh(root, f"readlink /var/lib/{name}").strip() == os.readlink(f"/var/lib/{name}") for name in links)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a folder below /var/lib")
def test_a_root_below_var_lib_is_supported() -> None:
    root = Path(f"/var/lib/dv{os.getpid()}")
    root.mkdir()
    try:
        assert sh(root, f"touch /var/lib/kubelet/here; ls {root}") == "here\n"
    finally:
        (root / "here").unlink(missing_ok=True)
        root.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_for_other_users_a_user_namespace_gives_only_the_users_rights(root: Path) -> None:
    os.chown(root, NOBODY, NOBODY)
    if not works("setpriv", f"--reuid={NOBODY}", "--clear-groups", "unshare", "--mount", "--map-root-user", "true"):
        pytest.skip("this kernel allows no user namespaces")
    as_nobody = [sys.executable, "-c", AS_NOBODY]
    assert sh(root, "id -u; touch /var/lib/kubelet/here", as_nobody) == "0\n"
    assert (root / "here").stat().st_uid == NOBODY
    secret = root / "secret"
    secret.touch(mode=0o600)
    assert run(root, "cat", str(secret), command=as_nobody).returncode == 1


def test_the_exit_code_is_that_of_the_program(root: Path) -> None:
    assert run(root, "sh", "-c", "exit 42").returncode == 42


def test_the_process_executes_the_program_so_that_signals_reach_it(root: Path) -> None:
    argv = [*AS_KUBELET, str(root), "sh", "-c", "echo $$; exec sleep 60"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM


def test_a_closed_pipe_ends_the_program_as_usual(root: Path) -> None:
    script = "trap - PIPE; kill -PIPE $$; echo survived"
    assert run(root, "sh", "-c", script).returncode == -signal.SIGPIPE


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["no-such-program"], "error: no-such-program: no such program\n"),
        (["/etc/passwd"], "error: /etc/passwd cannot be run: Permission denied\n"),
    ],
)
def test_a_program_that_cannot_be_run_is_named(root: Path, argv: list[str], message: str) -> None:
    done = run(root, *argv)
    assert (done.returncode, done.stderr) == (1, message)


def test_a_missing_root_is_named(root: Path) -> None:
    done = run(root / "nope", "true")
    assert (done.returncode, done.stderr) == (
        1,
        f"error: {root}/nope: No such file or directory; expected the root of a devlet\n",
    )


# In a user namespace of its own a limit can be set without touching the host.
LIMITED = """
echo 0 > /proc/sys/user/{limit} || exit 77
exec "$@"
"""


@pytest.mark.parametrize(
    ("limit", "drop", "advice"),
    [
        ("max_mnt_namespaces", [], "unshare: the limit on namespaces is reached; run it as root, or "),
        (
            "max_user_namespaces",
            ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"],
            "allow user namespaces (sysctl user.max_user_namespaces=10000)",
        ),
    ],
)
def test_a_refusal_by_the_kernel_is_an_error_that_says_what_to_do(
    root: Path, limit: str, drop: list[str], advice: str
) -> None:
    shell = ["unshare", "--user", "--map-root-user", "sh", "-c", LIMITED.format(limit=limit), "sh"]
    argv = [*shell, *drop, *AS_KUBELET, str(root), "true"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        pytest.skip("the limits of a user namespace cannot be set here")
    assert done.returncode == 1
    assert done.stderr.startswith("error: /var/lib/kubelet cannot be shown to the program: ")
    assert advice in done.stderr


@pytest.mark.parametrize(
    ("sysctls", "advice"),
    [
        (
            {"kernel/unprivileged_userns_clone": "0"},
            "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)",
        ),
        (
            {"kernel/apparmor_restrict_unprivileged_userns": "1", "user/max_user_namespaces": "0"},
            "(sysctl user.max_user_namespaces=10000, sysctl kernel.apparmor_restrict_unprivileged_userns=0)",
        ),
        ({"user/max_user_namespaces": "5"}, "in a container, give it the capability SYS_ADMIN"),
    ],
)
def test_the_advice_names_the_disabled_sysctl(tmp_path: Path, sysctls: dict[str, str], advice: str) -> None:
    for name, value in sysctls.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{value}\n")
    text = missing_rights("unshare: Operation not permitted", tmp_path)
    assert text.startswith(
        "/var/lib/kubelet cannot be shown to the program: unshare: Operation not permitted; run it as"
    )
    assert advice in text
