"""Each driver has a root of its own."""

from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.sanity.stand import BaseStand


def test_a_root_goes_unless_it_is_kept(root: Path) -> None:
    with BaseStand()._root() as made:
        assert made.is_dir()
    assert not made.exists()
    stand = BaseStand(keep=root)
    for number in ("001", "002"):
        with stand._root() as made:
            assert made == root / number
        assert made.is_dir()


def test_one_that_is_too_long_for_sockets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="too long for sockets"), BaseStand(keep=tmp_path / ("x" * 60))._root():
        pass
