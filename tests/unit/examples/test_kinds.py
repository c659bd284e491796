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
def test_the_first_word_chooses_and_the_rest_is_for_the_chosen(kind: str) -> None:
    with pytest.raises(SystemExit, match=rf"{kind} \['--help', '-v', '1'\]"):
        kinds.main("Both.", {"driver": Driver, "plugin": Plugin}, [kind, "--help", "-v", "1"])


@pytest.mark.parametrize("words", [[], ["neither"], ["--node-name", "n1"]])
def test_without_a_known_word_the_kinds_are_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        kinds.main("Both.", {"driver": Driver, "plugin": Plugin}, words)
    assert "{driver,plugin} [flags]" in capsys.readouterr().err
