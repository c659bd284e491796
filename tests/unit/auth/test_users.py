import pytest

from devlet.auth.users import ANONYMOUS, UNAUTHENTICATED, User, node_name


def test_the_anonymous_user_is_unauthenticated() -> None:
    assert ANONYMOUS.groups == (UNAUTHENTICATED,)


@pytest.mark.parametrize(
    ("user", "node"),
    [
        (User("system:node:n1", groups=("system:nodes",)), "n1"),
        (User("system:node:n1", groups=("system:authenticated",)), None),
        (User("system:node:", groups=("system:nodes",)), None),
        (User("n1", groups=("system:nodes",)), None),
    ],
)
def test_a_node_is_recognized_by_its_name_and_its_group(user: User, node: str | None) -> None:
    assert node_name(user) == node
