import base64

from hypothesis import given
from hypothesis import strategies as st

from devlet.cli.views.reader import Reader
from devlet.cli.views.secret import view


@given(st.binary(max_size=40))
def test_the_length_is_that_of_the_value_and_the_value_is_not_shown(value: bytes) -> None:
    encoded = base64.b64encode(value).decode()
    reader = Reader.__new__(Reader)  # a secret refers to nothing
    lines = list(view({"type": "Opaque", "data": {"key": encoded}}, reader))
    assert lines[-1].split() == ["key", str(len(value))]
    assert not encoded or len(encoded) < 4 or all(encoded not in line for line in lines)


def test_a_secret_without_data_has_none() -> None:
    assert list(view({}, Reader.__new__(Reader)))[-1] == "Data:         <none>"
