import pytest
import yaml

from devlet.kit import yaml_depth


def test_ordinary_documents_pass() -> None:
    yaml_depth.check(b"a: [1, {b: [2]}]\n---\nc: d\n")


@pytest.mark.parametrize("text", ["[" * 60_000, "{a: " * 60_000, "- " * 60_000, "[" * 101 + "]" * 101])
def test_what_would_overflow_the_stack_of_libyaml_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="nested more than 100 levels deep"):
        yaml_depth.check(text)


def test_the_limit_itself_is_allowed() -> None:
    yaml_depth.check("[" * 100 + "]" * 100)


def test_text_that_is_not_yaml_is_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        yaml_depth.check(b"a: [")
