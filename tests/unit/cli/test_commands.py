import pytest

from devlet.cli import commands, main


def test_help_lists_the_commands_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2].split("\n")
    assert [line.split()[0] for line in listed if line.startswith("  ") and line.strip()][
        : len(commands.COMMANDS)
    ] == sorted(commands.COMMANDS)


def test_shared_flags_may_stand_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--root", "/nope", "describe", "pods"]) == 1
    assert "no devlet runs on /nope" in capsys.readouterr().err
    assert main.run(["--root", "/nope", "describe", "pods", "--root", "/other"]) == 1
    assert "no devlet runs on /other" in capsys.readouterr().err


def test_a_command_that_does_not_take_a_shared_flag_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["-n", "team", "version"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "error: `devlet version` has no option --namespace"
    assert second == "See 'devlet --help' for usage."


def test_kubectl_finds_its_cluster_where_kubectl_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/no/such/file")
    for arguments in (["get", "pods"], ["events"]):
        assert main.run(arguments, main.KUBECTL_PLUGIN) == 1
        assert "/no/such/file" in capsys.readouterr().err


def test_the_plugin_is_named_as_kubectl_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl-devlet", "wait", "--nonsense"])
    with pytest.raises(SystemExit, match="1"):
        main.kubectl_plugin()
    assert "See 'kubectl devlet wait --help' for usage." in capsys.readouterr().err
