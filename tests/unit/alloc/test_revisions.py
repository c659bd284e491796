from devlet.alloc.revisions import Revisions
from devlet.objects.identifiers import NodeName

A, B = NodeName("a"), NodeName("b")


def test_a_change_is_for_the_nodes_it_names_alone() -> None:
    revisions = Revisions()
    revisions.changed([A])
    assert (revisions.of(A), revisions.of(B), revisions.now) == (1, 0, 1)
    revisions.changed([B])
    assert (revisions.of(A), revisions.of(B), revisions.now) == (1, 2, 2)


def test_a_change_for_all_is_newer_than_all_before_it() -> None:
    revisions = Revisions()
    revisions.changed([A])
    revisions.changed(None)
    assert (revisions.of(A), revisions.of(B)) == (2, 2)
    revisions.changed([A])
    assert (revisions.of(A), revisions.of(B)) == (3, 2)
