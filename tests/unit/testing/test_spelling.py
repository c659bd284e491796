import grpc
import pytest

from devlet.errors import InvalidInput
from devlet.testing.spelling import check_word, status_code


def test_a_word_that_is_known_passes() -> None:
    check_word("times", ["skip", "times"], "option")
    assert status_code("INTERNAL") is grpc.StatusCode.INTERNAL


def test_an_unknown_word_is_reported_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_word("tiems", ["skip", "times"], "option of a fault")
    assert str(caught.value) == "there is no option of a fault 'tiems': did you mean 'times'? there are skip, times"
    with pytest.raises(InvalidInput, match=r"^there is no option 'x': there are skip, times$"):
        check_word("x", ["skip", "times"], "option")


@pytest.mark.parametrize("name", ["internal", "INTERNALL"])
def test_an_unknown_status_is_reported_with_the_known_ones(name: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"no gRPC status '{name}': did you mean 'INTERNAL'. there are OK, CANCELLED"
    ):
        status_code(name)
