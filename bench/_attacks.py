"""Requests of at most 3 MB that are as expensive for a server as a client can make them. Used by bench/requests.py."""

from collections.abc import Iterator

from bench import _attacks_on_bodies, _attacks_on_kinds
from bench._attack_parts import Attack, Request

__all__ = ["Attack", "Request", "attacks"]


def attacks() -> Iterator[Attack]:
    yield from _attacks_on_bodies.attacks()
    yield from _attacks_on_kinds.attacks()
