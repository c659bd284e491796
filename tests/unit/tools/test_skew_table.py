from tools.ci import Result
from tools.skew_table import table


def result(name: str, outcome: str, **cells: str) -> Result:
    properties = {
        f"t.py::test_{feature}[{name}]": {"feature": feature, "release": name, **({"result": cell} if cell else {})}
        for feature, cell in cells.items()
    }
    return Result(name, outcome, 1.0, 1.0, 1.0, properties=properties)


def test_the_table_has_a_row_per_test_in_their_order_and_a_column_per_release() -> None:
    record = {
        "1.34": result("1.34", "passed", ready="yes", taints=""),
        "1.36": result("1.36", "passed", taints="with `Gate`", ready="yes"),
    }
    assert table(record).splitlines() == [
        "|  | 1.34 | 1.35 | 1.36 |",
        "| --- | --- | --- | --- |",
        "| ready | yes | not tested | yes |",
        "| taints | not in this release | not tested | with `Gate` |",
    ]


def test_a_feature_without_a_result_in_a_run_that_failed_is_shown_as_failed() -> None:
    lines = table({"1.36": result("1.36", "FAILED (2)", ready="yes", taints="")}).splitlines()
    assert lines[2:] == ["| ready | not tested | not tested | yes |", "| taints | not tested | not tested | failed |"]
