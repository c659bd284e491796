from hypothesis import given

from devlet.objects.documents import Document
from tests.support.problems.generator import THEMES
from tests.support.problems.strategy import problems


@given(problem=problems(["taints", "match"]))
def test_a_problem_has_the_themes_that_were_named(problem: Document) -> None:
    assert set(problem["theme"].split("+")) - {""} <= {"taints", "match"}
    assert problem["claims"] and THEMES


@given(problem=problems(["match"]))
def test_the_claims_of_a_problem_name_classes_that_it_has(problem: Document) -> None:
    classes = {each["metadata"]["name"] for each in problem["classes"]}
    requests = [request for claim in problem["claims"] for request in claim["spec"]["devices"]["requests"]]
    assert {request["exactly"]["deviceClassName"] for request in requests} <= classes
