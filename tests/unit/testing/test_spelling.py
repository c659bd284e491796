import grpc
import pytest

from devlet.errors import InvalidInput
from devlet.testing.spelling import check_word, status_code


def test_a_word_that_is_known_passes() -> None:
    check_word("times", ["skip", "times"], "option")
    assert status_code("INTERNAL") is grpc.StatusCode.INTERNAL


def test_one_that_is_not_is_told_with_what_there_is() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_word("tiems", ["skip", "times"], "option of a fault")
    assert str(caught.value) == "there is no option of a fault 'tiems': did you mean 'times'? there are skip, times"
    with pytest.raises(InvalidInput, match=r"^there is no option 'x': there are skip, times$"):
        check_word("x", ["skip", "times"], "option")


@pytest.mark.parametrize("name", ["internal", "INTERNALL"])
def test_a_status_that_does_not_exist_is_told_with_what_there_is(name: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"no gRPC status '{name}': did you mean 'INTERNAL'. there are OK, CANCELLED"
    ):
        status_code(name)
