from collections.abc import Callable

import pytest

from devlet.cel.values import CelError


@pytest.fixture(scope="session")
def error_of() -> Callable[..., str]:
    """Calls a function that must fail, and returns the text of its error."""

    def message(call: Callable[..., object], *args: object) -> str:
        with pytest.raises(CelError) as caught:
            call(*args)
        return caught.value.message

    return message
