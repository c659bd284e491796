import pytest

from devlet.cel.environment import kubernetes
from devlet.cel.functions import Function

FUNCTIONS = list(kubernetes((1, 36), stored=True).functions.values())


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_the_overloads_of_a_function_have_ids_of_their_own_and_can_be_called(function: Function) -> None:
    ids = [overload.id for overload in function.overloads]
    assert len(set(ids)) == len(ids) > 0
    assert all(callable(overload.call) for overload in function.overloads)
    assert all(overload.params for overload in function.overloads if overload.is_member)
