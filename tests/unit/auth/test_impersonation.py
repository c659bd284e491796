from devlet.auth.impersonation import Impersonation
from devlet.auth.rules import Attributes
from devlet.auth.users import ANONYMOUS, User


def test_every_part_of_an_identity_requires_a_permission_of_its_own() -> None:
    wanted = Impersonation("jane", "u-1", ("dev",), {"scopes": ("a", "b")})
    assert list(wanted.permissions()) == [
        Attributes("impersonate", resource="users", name="jane"),
        Attributes("impersonate", resource="groups", name="dev"),
        *(
            Attributes(
                "impersonate",
                group="authentication.k8s.io",
                version="v1",
                resource="userextras",
                subresource="scopes",
                name=value,
            )
            for value in "ab"
        ),
        Attributes("impersonate", group="authentication.k8s.io", version="v1", resource="uids", name="u-1"),
    ]


def test_a_service_account_is_a_resource_of_its_own_and_has_its_groups() -> None:
    wanted = Impersonation("system:serviceaccount:ns:sa")
    assert list(wanted.permissions()) == [
        Attributes("impersonate", resource="serviceaccounts", namespace="ns", name="sa")
    ]
    assert wanted.user().groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")


def test_the_result_is_authenticated_unless_it_is_the_anonymous_user() -> None:
    assert Impersonation("jane").user() == User("jane", groups=("system:authenticated",))
    assert Impersonation(ANONYMOUS.name).user() == ANONYMOUS
