import pytest

from devlet.errors import NotPrepared
from devlet.node.claims.prepare_context import Problem, problem_text, raise_for
from tests.support.claim_specimens import GPU, NIC, key

PROBLEMS = [Problem(NIC, key("a"), "no cable"), Problem(GPU, key("a"), "too hot"), Problem(GPU, key("b"), "gone")]


def test_an_error_names_the_claim_driver_and_reason_of_each_problem() -> None:
    with pytest.raises(NotPrepared) as caught:
        raise_for(PROBLEMS)
    assert str(caught.value) == (
        "claim a: driver gpu.example.com: too hot; claim a: driver nic.example.com: no cable;"
        " claim b: driver gpu.example.com: gone"
    )
    raise_for([])


def test_the_problems_of_one_claim_are_described() -> None:
    assert problem_text(key("a"), PROBLEMS) == "driver gpu.example.com: too hot; driver nic.example.com: no cable"
    assert problem_text(key("c"), PROBLEMS) == ""
