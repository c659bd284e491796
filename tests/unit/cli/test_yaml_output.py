import yaml
from hypothesis import given
from hypothesis import strategies as st

from devlet.cli.yaml_output import dump

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_what_is_written_is_read_back(value: object) -> None:
    assert yaml.safe_load(dump(value)) == value


def test_it_looks_as_kubectl_writes_it() -> None:
    value = {"b": "line 1\nline 2\n", "a": "1", "when": "2026-01-02T03:04:05Z", "l": [{"x": True}], "s": "plain"}
    assert dump(value) == ('a: "1"\nb: |\n  line 1\n  line 2\nl:\n- x: true\ns: plain\nwhen: "2026-01-02T03:04:05Z"\n')


def test_the_same_value_twice_is_written_twice() -> None:
    shared = {"x": 1}
    assert dump([shared, shared]) == "- x: 1\n- x: 1\n"
