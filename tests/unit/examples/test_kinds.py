from collections.abc import Sequence

import pytest

from devlet.examples import kinds
from devlet.sdk.device_plugin import DevicePlugin
from devlet.sdk.dra_driver import DraDriver


class Driver(DraDriver):
    def main(self, argv: Sequence[str] | None = None) -> None:
        raise SystemExit(f"driver {argv}")


class Plugin(DevicePlugin):
    def main(self, argv: Sequence[str] | None = None) -> None:
        raise SystemExit(f"plugin {argv}")


@pytest.mark.parametrize("kind", ["driver", "plugin"])
def test_the_first_argument_selects_the_driver_which_gets_the_others(kind: str) -> None:
    with pytest.raises(SystemExit, match=rf"{kind} \['--help', '-v', '1'\]"):
        kinds.main("Both.", {"driver": Driver, "plugin": Plugin}, [kind, "--help", "-v", "1"])


@pytest.mark.parametrize("words", [[], ["neither"], ["--node-name", "n1"]])
def test_an_unknown_kind_is_an_error_that_names_the_kinds(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        kinds.main("Both.", {"driver": Driver, "plugin": Plugin}, words)
    assert "{driver,plugin} [flags]" in capsys.readouterr().err
