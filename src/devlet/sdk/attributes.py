"""Texts from elsewhere as attributes: one that is too long would keep all devices of its pool from being published."""

from devlet.objects.validation.attributes import VALUE_MAX

__all__ = ["shortened"]


def shortened(text: str) -> str:
    """What fits into an attribute, 64 bytes, cut between characters. Names of files may be no text: `?` instead."""
    return text.encode(errors="replace")[:VALUE_MAX].decode(errors="ignore")
