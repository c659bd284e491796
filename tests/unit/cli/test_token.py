import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devlet.cli import main


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
    for _ in range(2):
        assert main.run(["token", "driver", "gpu.example.com", "--root", str(daemon), "--node-name", "node1"]) == 0
        path = Path(capsys.readouterr().out.strip())
        seen.append(path.read_text())
    assert path == daemon / "drivers" / "gpu.example.com.kubeconfig"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert seen[0] == seen[1]
    assert main.run(["get", "resourceslices", "--kubeconfig", str(path)]) == 0
    assert main.run(["get", "secrets", "-A", "--kubeconfig", str(path)]) == 1
    assert "forbidden" in capsys.readouterr().err


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
