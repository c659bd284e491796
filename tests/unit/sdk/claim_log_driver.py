"""Switches LEDs on and off for claims, as a driver with a ClaimLog does, until it is killed. An LED that is on is a
file. Run by test_claim_log.py."""

import os
import random
import sys
from pathlib import Path

import anyio

from devlet.sdk.claim_log import ClaimLog
from devlet.sdk.values import ClaimRef

CLAIMS = [ClaimRef("default", f"c{number}", f"uid-{number}") for number in range(4)]


def switch_on(room: Path, leds: list[str]) -> None:
    for led in leds:
        (room / led).touch()


def switch_off(room: Path, leds: list[str]) -> None:
    for led in leds:
        (room / led).unlink(missing_ok=True)


async def main(log: "ClaimLog[list[str]]", room: Path, seed: int) -> None:
    chances = random.Random(seed)
    while True:
        claim = chances.choice(CLAIMS)
        if chances.random() < 0.5:
            leds = [f"{claim.name}-{number}" for number in range(3)]
            async with log.preparing(claim, leds):
                switch_on(room, leds)
        else:
            async with log.unpreparing(claim.uid) as entry:
                if entry is not None:
                    switch_off(room, entry.detail)
        os.write(1, b".\n")


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    anyio.run(main, ClaimLog(directory / "claims.json", list[str]), directory / "room", int(sys.argv[2]))
