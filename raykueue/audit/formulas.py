"""Bounds as formulas: `ttl + T_kr + 1 + T_gc + g`. Numbers, names, + - * and brackets; nothing else is evaluated."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def evaluate(formula: str | float, names: Mapping[str, float]) -> float:
    """The value of a formula, in the unit of its names.

    Raises:
        ValueError: it uses anything but numbers, + - *, brackets and these names.
    """
    if not isinstance(formula, str):
        return float(formula)
    try:
        tree = ast.parse(formula, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"not a formula: {formula!r} ({error.msg}); write for example 'T_gc + g'") from error
    return _value(tree.body, formula, names)


def check(formula: str | float, names: Iterable[str]) -> None:
    """Raises ValueError as `evaluate` does, without values."""
    evaluate(formula, dict.fromkeys(names, 0.0))


def _value(node: ast.expr, formula: str, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id=name):
            raise ValueError(f"formula {formula!r} uses {name!r}; the names are {', '.join(sorted(names))}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, formula, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, formula, names), _value(right, formula, names))
    raise ValueError(f"formula {formula!r} may only use numbers, names, + - * and brackets")
