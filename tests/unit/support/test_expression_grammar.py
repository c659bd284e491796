import re

import pytest

from tests.support.expression_grammar import DEVICE, DEVICE_DOCUMENT, LIBRARIES, LITERALS, STANDARD
from tests.support.expressions import Expressions

TYPES = {name for table in (LITERALS, STANDARD, LIBRARIES, DEVICE) for name in table}


@pytest.mark.parametrize("table", [STANDARD, LIBRARIES, DEVICE])
def test_every_hole_has_a_type_that_something_gives(table: dict[str, tuple[str, ...]]) -> None:
    templates = [text for texts in table.values() for text in texts]
    assert {hole for text in templates for hole in re.findall(r"(?<!:)\{([a-z]+)\}", text)} <= TYPES
    assert {type_ for text in templates for type_ in re.findall(r"<[a-z]:([a-z]+)>", text)} <= TYPES


def test_types_without_literals_have_templates_without_holes() -> None:
    for name in TYPES - set(LITERALS):
        texts = [text for table in (LIBRARIES, DEVICE) for text in table.get(name, ())]
        assert any("{" not in text for text in texts), name


def test_the_device_has_attributes_of_every_type() -> None:
    kinds = {kind for attribute in DEVICE_DOCUMENT["attributes"].values() for kind in attribute}  # type: ignore[attr-defined]
    assert kinds >= {"string", "int", "bool", "version", "strings", "ints"}
    assert any("device." in text for text in Expressions(1).some(50))
