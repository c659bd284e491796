import errno
import os

import pytest

from devlet.errors import Unavailable
from devlet.sdk.disk_errors import explained


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSPC, "x cannot be written: No space left on device; make room on that disk"),
        (errno.EROFS, "x cannot be written: Read-only file system; mount it for writing, or choose another directory"),
        (errno.ENOTDIR, "x cannot be written: Not a directory; a part of the path is not a directory, move it away"),
        (errno.EBUSY, "x cannot be written: Device or resource busy"),
    ],
)
def test_an_error_of_the_disk_says_what_to_do(number: int, text: str) -> None:
    with pytest.raises(Unavailable) as e, explained("x cannot be written"):
        raise OSError(number, os.strerror(number))
    assert str(e.value) == text


def test_a_missing_permission_is_reported_with_the_uid() -> None:
    with pytest.raises(Unavailable, match=f"Permission denied; let uid {os.geteuid()}, as which the driver runs,"):
        with explained("x cannot be written"):
            raise PermissionError(errno.EACCES, "Permission denied")


def test_other_errors_are_mistakes_and_pass() -> None:
    with pytest.raises(ZeroDivisionError), explained("x cannot be written"):
        raise ZeroDivisionError
