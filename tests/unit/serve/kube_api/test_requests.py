from devlet.serve.kube_api.requests import ANONYMOUS, UNAUTHENTICATED, Attributes


def test_a_request_is_about_a_resource_or_about_a_path() -> None:
    assert Attributes("get", resource="pods").is_resource
    assert not Attributes("get", path="/version").is_resource


def test_who_does_not_say_who_they_are_is_unauthenticated() -> None:
    assert ANONYMOUS.groups == (UNAUTHENTICATED,)
