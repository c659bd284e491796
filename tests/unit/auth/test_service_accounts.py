import pytest

from devlet.auth import service_accounts
from devlet.auth.users import User


def test_a_user_name_consists_of_namespace_and_name() -> None:
    name = service_accounts.username("ns", "default")
    assert name == "system:serviceaccount:ns:default"
    assert service_accounts.split_username(name) == ("ns", "default")


@pytest.mark.parametrize("name", ["admin", "system:serviceaccount:", "system:serviceaccount:a:", "system:node:n"])
def test_other_users_are_not_service_accounts(name: str) -> None:
    assert service_accounts.split_username(name) is None


def test_a_name_with_another_colon_is_not_a_service_account() -> None:
    assert service_accounts.split_username("system:serviceaccount:a:b:c") is None


def test_the_groups_of_an_account_contain_its_namespace() -> None:
    assert service_accounts.groups("ns") == (
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    )


def test_a_driver_is_recognized_by_its_account() -> None:
    name = service_accounts.username("kube-system", service_accounts.driver_account("GPU.example.com"))
    assert service_accounts.driver_of(User(name)) == "gpu.example.com"
    assert service_accounts.driver_of(User(name.replace("kube-system", "default"))) is None
    assert service_accounts.driver_of(User(service_accounts.username("kube-system", "devlet-driver-"))) is None
    assert service_accounts.driver_of(User("admin")) is None


@pytest.mark.parametrize(("names", "node"), [((), None), (("n1",), "n1"), (("n1", "n2"), None), (("",), None)])
def test_a_token_is_for_a_node_if_it_names_exactly_one(names: tuple[str, ...], node: str | None) -> None:
    assert service_accounts.node_of(User("a", extra={service_accounts.NODE_NAME: names})) == node
