from devlet.cel.grammar import END_OF_RULE, RULES, Node, Step, next_tokens
from devlet.cel.lexer import IDENTIFIER, KINDS


def _nodes() -> list[Node]:
    found: dict[Node, None] = {}
    todo = list(RULES.values())
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = None
            todo += [*node.branches, *([node.next] if node.next else [])]
    return list(found)


def test_an_operand_starts_with_one_of_fifteen_tokens() -> None:
    assert len(next_tokens(RULES["expr"])) == 15
    assert next_tokens(RULES["expr"]) == next_tokens(RULES["unary"])
    assert "?" not in next_tokens(RULES["expr"])


def test_after_an_operand_its_rule_may_end() -> None:
    after = RULES["relation"].next
    assert after is not None
    assert next_tokens(after) == {"<", "<=", ">=", ">", "==", "!=", "in", END_OF_RULE}


def test_no_rule_may_be_empty() -> None:
    assert all(END_OF_RULE not in next_tokens(rule) for rule in RULES.values())


def test_a_field_may_be_optional_or_in_back_quotes() -> None:
    assert next_tokens(RULES["optional name"]) == {"?", IDENTIFIER, "ESC_IDENTIFIER"}


def test_every_kind_of_token_is_used_and_every_rule_exists() -> None:
    nodes = _nodes()
    assert set().union(*(node.tokens for node in nodes)) == set(KINDS)
    assert {node.rule for node in nodes if node.step is Step.RULE} == set(RULES) - {"start"}
