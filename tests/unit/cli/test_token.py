import base64
import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devlet.cli import main
from devlet.daemon import membership


@pytest.fixture
def daemon(root: Path) -> Iterator[Path]:
    command = [sys.executable, "-m", "devlet", "up", "--root", str(root), "--node-name", "node1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("devlet is ready")
        yield root
        process.kill()


def test_a_driver_gets_a_private_kubeconfig_that_stays_the_same(
    daemon: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    for more in ([], ["--node-name", "node1"]):
        assert main.run(["token", "driver", "gpu.example.com", "--root", str(daemon), *more]) == 0
        path = Path(capsys.readouterr().out.strip())
        seen.append(path.read_text())
    assert path == daemon / "drivers" / "gpu.example.com.kubeconfig"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert seen[0] == seen[1]
    assert main.run(["get", "resourceslices", "--kubeconfig", str(path)]) == 0
    assert main.run(["get", "secrets", "-A", "--kubeconfig", str(path)]) == 1
    assert "forbidden" in capsys.readouterr().err


def test_a_driver_of_another_node_gets_a_file_of_its_own(daemon: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["token", "driver", "gpu.example.com", "--root", str(daemon)]
    assert main.run(arguments) == 0
    here = Path(capsys.readouterr().out.strip())
    before = here.read_text()
    assert main.run([*arguments, "--node-name", "node2"]) == 0
    there = Path(capsys.readouterr().out.strip())
    assert there == daemon / "drivers" / "gpu.example.com@node2.kubeconfig"
    assert here.read_text() == before
    assert [node_in(path) for path in (here, there)] == ["node1", "node2"]


def node_in(kubeconfig: Path) -> str:
    """The node that its token is for."""
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    body = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    name: str = claims["kubernetes.io"]["node"]["name"]
    return name


def test_a_node_with_a_name_that_makes_no_file_name_is_refused(
    daemon: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = ".".join(["n" * 60] * 4)
    assert main.run(["token", "driver", "gpu.example.com", "--root", str(daemon), "--node-name", node]) == 1
    assert "too long for a file name" in capsys.readouterr().err


def test_the_root_of_a_joined_node_says_where_its_credentials_are_made(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    membership.join(root, "https://10.0.0.1:6443")
    assert main.run(["token", "driver", "gpu.example.com", "--root", str(root), "--node-name", "node2"]) == 1
    told = capsys.readouterr().err
    assert f"the node on {root} belongs to the cluster at https://10.0.0.1:6443" in told
    assert "`devlet token driver gpu.example.com --node-name node2`" in told
    assert main.run(["token", "node", "node3", "--root", str(root)]) == 1
    assert "`devlet token node node3`" in capsys.readouterr().err


def test_a_node_gets_a_kubeconfig_on_standard_output(daemon: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["token", "node", "node2", "--root", str(daemon)]) == 0
    config = yaml.safe_load(capsys.readouterr().out)
    assert config["users"][0]["name"] == "system:node:node2"


def test_names_are_checked(daemon: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["token", "driver", "../../etc/passwd", "--root", str(daemon)]) == 1
    assert "driver '../../etc/passwd'" in capsys.readouterr().err
    assert main.run(["token", "teapot", "x", "--root", str(daemon)]) == 1


def test_a_root_that_never_ran_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["token", "node", "node2", "--root", str(root)]) == 1
    assert f"start it with `devlet up --root {root}`" in capsys.readouterr().err
