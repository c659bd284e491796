from devlet.cel.ast import Place, Source


def test_places_count_lines_from_one_and_columns_of_code_points_from_zero() -> None:
    source = Source('"é" ==\n  device', {}, {})
    assert [source.place(offset) for offset in (0, 4, 9)] == [Place(1, 0), Place(1, 4), Place(2, 2)]


def test_a_snippet_is_the_text_of_a_node_and_empty_for_one_that_a_macro_made() -> None:
    source = Source("a && b.c", {}, {1: (5, 8)})
    assert (source.snippet(1), source.snippet(2)) == ("b.c", "")
