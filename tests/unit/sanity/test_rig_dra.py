"""What can be done to a DRA driver under test."""

import sys

import pytest

from devlet.sanity.check import CannotTell
from devlet.sanity.driver import Command
from devlet.sanity.rig_dra import Settings
from devlet.sanity.stand_dra import DraStand

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

QUICK = Settings(start=0.5, wait=0.5, settle=0.1, quiet=0.1, dial=0.5, answer=2.0)
PLACES = ["--root={root}", "--cdi={cdi}", "--kubeconfig={kubeconfig}", "--node={node}"]


def python(module: str, *words: str) -> Command:
    return Command([sys.executable, "-m", f"devlet.testing.{module}", *PLACES, *words])


async def test_what_a_sound_driver_has_published_can_be_claimed() -> None:
    stand = DraStand(python("sound_dra_driver", "--instance={instance}"), settings=Settings(settle=0.1))
    async with stand.open() as rig:
        assert (rig.trouble, rig.name, len(rig.offers())) == ("", "led.example.com", 11)
        assert list(rig.pools()) == [rig.places.node]
        async with rig.claims(2) as claims:
            assert claims[0].devices.isdisjoint(claims[1].devices)
        assert isinstance(rig.usage().files, int)
        assert [path.name for path in rig.leftovers()] == ["dra-one.sock", "led.example.com-one-reg.sock"]


async def test_a_second_one_needs_a_command_or_the_word_for_it() -> None:
    async with DraStand(Command(["sleep", "60"]), settings=QUICK).open() as rig:
        with pytest.raises(CannotTell, match="instance}, or give --second COMMAND"):
            await rig.start_second()
    async with DraStand(Command(["sleep", "60"]), second="sleep 61", settings=QUICK).open() as rig:
        await rig.start_second()
        assert rig.second is not None
        assert rig.second.pid
