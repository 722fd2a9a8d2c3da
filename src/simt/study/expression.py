"""Expressions over the columns of a study: constraints, objectives, columns to show.

An expression is an arithmetic one of Python, without anything that could do harm: numbers, text, names,
`+ - * / // % **`, comparisons, `and`, `or`, `not`, `in`, `a if b else c`, and the functions of FUNCTIONS.
A name may have dots, as those of counters (`dram__bytes_read.sum`) and of specifications (`sm.count`) do.
"""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any

from simt.errors import StudyError
from simt.hints import did_you_mean

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "log": math.log,
    "log2": math.log2,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}
_LONGEST = 1000  # characters
_DEEPEST = 50  # levels of brackets and operators

# Powers are of floats, so that a large one overflows instead of filling the memory.
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: math.pow(a, b),
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_NUMBERS_ONLY = (ast.Add, ast.Mult, ast.Mod)  # which would repeat, join or format text


class Expression:
    """A checked expression. `names` are the columns that it reads.

    Raises StudyError for what is no expression of this kind.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        if not self.text or len(self.text) > _LONGEST:
            raise StudyError(
                f"expression of {len(self.text)} characters, expected 1 to {_LONGEST:,}, "
                "such as `cycles * joules`"
            )
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = error.msg if isinstance(error, SyntaxError) else str(error)
            raise StudyError(f"expression {self.text!r}: {why}") from None
        self.names: dict[str, None] = {}
        self._check(self._tree, 0)

    def _check(self, node: ast.AST, depth: int) -> None:
        inner: list[ast.AST]
        if depth > _DEEPEST:
            raise StudyError(f"expression {self.text!r}: nested deeper than {_DEEPEST} levels")
        if (name := _dotted(node)) is not None:
            self.names[name] = None
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
            return
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            inner = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            inner = [node.operand]
        elif isinstance(node, ast.BoolOp):
            inner = [*node.values]
        elif isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
            inner = [node.left, *node.comparators]
        elif isinstance(node, ast.IfExp):
            inner = [node.test, node.body, node.orelse]
        elif isinstance(node, (ast.Tuple, ast.List)):
            inner = [*node.elts]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id not in FUNCTIONS:
                raise StudyError(
                    f"expression {self.text!r}: there is no function {node.func.id!r}; "
                    f"there are {', '.join(FUNCTIONS)}"
                )
            inner = [*node.args]
        else:
            raise StudyError(
                f"expression {self.text!r}: {ast.unparse(node)!r} is not allowed; expected numbers, names, "
                f"arithmetic, comparisons, and {', '.join(FUNCTIONS)}"
            )
        for each in inner:
            self._check(each, depth + 1)

    def value(self, row: Mapping[str, Any]) -> Any:
        """The value for a row, by the names of its columns; None where a column that it needs is None, or
        where it is undefined, as after a division by zero.

        Raises StudyError for a name that the row does not have, and for operands that do not go together.
        """
        try:
            return self._value(self._tree, row)
        except _Missing:
            return None
        except (ZeroDivisionError, OverflowError):
            return None
        except ValueError:  # the logarithm of a negative number
            return None
        except TypeError as error:
            raise StudyError(f"expression {self.text!r}: {error}") from None

    def number(self, row: Mapping[str, Any]) -> float | None:
        """The same, which must be a number; None where it is undefined or infinite."""
        value = self.value(row)
        if value is None:
            return None
        if not isinstance(value, (int, float)):
            raise StudyError(f"expression {self.text!r} is {value!r}, expected a number")
        try:
            return float(value) if math.isfinite(value) else None
        except OverflowError:  # a whole number beyond those of floats
            return None

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a constraint is satisfied. Raises StudyError where it is undefined or no truth value."""
        value = self.value(row)
        if not isinstance(value, bool):
            raise StudyError(
                f"expression {self.text!r} is {value!r}, expected true or false, as from a comparison"
            )
        return value

    def excess(self, row: Mapping[str, Any]) -> float | None:
        """By how much a constraint is violated: 0 or less where it holds. Of `a <= b` it is a - b; of others,
        1 where they do not hold. None where it is undefined."""
        node = self._tree
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            signs: dict[type[ast.cmpop], int] = {ast.Lt: 1, ast.LtE: 1, ast.Gt: -1, ast.GtE: -1}
            sign = signs.get(type(node.ops[0]))
            if sign is not None and (holds := self.value(row)) is not None:
                left, right = self._value(node.left, row), self._value(node.comparators[0], row)
                if isinstance(left, (int, float)) and isinstance(right, (int, float)):
                    try:
                        over = float(sign * (left - right))
                    except OverflowError:
                        over = math.copysign(sys.float_info.max, sign * (1 if left > right else -1))
                    return min(over, 0.0) if holds else max(over, math.ulp(0.0))
        value = self.value(row)
        return None if value is None else 0.0 if value else 1.0

    def _value(self, node: ast.AST, row: Mapping[str, Any]) -> Any:
        if (name := _dotted(node)) is not None:
            try:
                value = row[name]
            except KeyError:
                hint = did_you_mean(name, [str(each) for each in row])
                raise StudyError(f"expression {self.text!r}: there is no column {name!r}{hint}") from None
            if value is None or value != value:
                raise _Missing
            return value
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left, row), self._value(node.right, row)
            if isinstance(node.op, _NUMBERS_ONLY) and not (_number(left) and _number(right)):
                raise TypeError(f"{ast.unparse(node)!r} is of {left!r} and {right!r}, expected numbers")
            return _BINARY[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp):
            return _UNARY[type(node.op)](self._value(node.operand, row))
        if isinstance(node, ast.BoolOp):
            wanted = isinstance(node.op, ast.Or)
            return next(
                (wanted for each in node.values if bool(self._value(each, row)) is wanted), not wanted
            )
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._value(node.test, row) else node.orelse, row)
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self._value(each, row) for each in node.elts)
        if isinstance(node, ast.Compare):
            left = self._value(node.left, row)
            for op, other in zip(node.ops, node.comparators, strict=True):
                right = self._value(other, row)
                if not _COMPARE[type(op)](left, right):
                    return False
                left = right
            return True
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return FUNCTIONS[node.func.id](*(self._value(each, row) for each in node.args))

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


class _Missing(Exception):
    """A column that is needed has no value."""


def _number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _dotted(node: ast.AST) -> str | None:
    """The name with dots; None for other nodes."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None
