from __future__ import annotations

import pytest

from raykueue.audit.formulas import check, evaluate

NAMES = {"T_gc": 5.0, "g": 30.0, "ttl": 20.0}


@pytest.mark.parametrize(
    ("formula", "value"),
    [("T_gc + g", 35), ("ttl + 3 + 1 + T_gc + g", 59), ("2 * (g - T_gc)", 50), ("-g", -30), ("7.5", 7.5), (9, 9)],
)
def test_a_formula_is_numbers_names_and_three_operators(formula: str | float, value: float) -> None:
    assert evaluate(formula, NAMES) == value


@pytest.mark.parametrize(
    "formula",
    [
        "",
        "g +",
        "g / 2",
        "g ** g",
        "abs(g)",
        "g.real",
        "__import__('os')",
        "'x'",
        "True",
        "g if g else 1",
        "[g]",
        "g < 1",
    ],
)
def test_anything_else_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        evaluate(formula, NAMES)


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="T_gc, g, ttl"):
        check("T_gc + grace", NAMES)
