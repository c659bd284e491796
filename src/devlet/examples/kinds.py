"""A program that is a DRA driver or a device plugin, depending on its first argument."""

import argparse
from collections.abc import Callable, Mapping, Sequence

from devlet.sdk import DevicePlugin, DraDriver

__all__ = ["main"]


def main(
    about: str, kinds: Mapping[str, Callable[[], DraDriver | DevicePlugin]], argv: Sequence[str] | None = None
) -> None:
    parser = argparse.ArgumentParser(description=about, usage=f"%(prog)s {{{','.join(kinds)}}} [flags]")
    parser.add_argument("kind", choices=kinds, help="kind of driver; KIND --help prints its flags", metavar="KIND")
    parser.add_argument("flags", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    kinds[chosen.kind]().main(chosen.flags)
