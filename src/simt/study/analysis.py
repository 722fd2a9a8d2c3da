"""What a study's table says: values of expressions, the best configurations, effects of parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from simt.study.expression import Expression
from simt.study.simulation import DONE
from simt.study.space import flattened

ACROSS: dict[str, Callable[[Sequence[float]], float]] = {
    "geomean": lambda x: math.exp(sum(map(math.log, x)) / len(x)) if min(x) > 0 else math.nan,
    "mean": lambda x: sum(x) / len(x),
    "sum": sum,
    "max": max,
    "min": min,
}
"""How values of several simulations of a configuration become one."""


@dataclass(frozen=True)
class Objective:
    """An expression to be minimised, or maximised."""

    expression: Expression
    maximise: bool = False

    @property
    def name(self) -> str:
        return self.expression.text

    def cost(self, value: float) -> float:
        """What is to be minimised."""
        return -value if self.maximise else value


def objectives(minimise: Iterable[Expression], maximise: Iterable[Expression]) -> list[Objective]:
    return [*(Objective(x) for x in minimise), *(Objective(x, True) for x in maximise)]


def with_specification(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table, with the fields of its specification, for expressions."""
    return {**flattened(json.loads(row["specification"])), **row}


def across(how: str, values: Sequence[float | None]) -> float | None:
    """One value of several; None where one is missing."""
    found = [value for value in values if value is not None]
    if len(found) < len(values) or not found:
        return None
    if how != "sum" and len(set(found)) == 1:  # exactly
        return found[0]
    value = ACROSS[how](found)
    return value if math.isfinite(value) else None


def non_dominated(costs: Sequence[Sequence[float]]) -> list[int]:
    """Positions of the rows of which no other is better in one column and as good in all; of equal ones the
    first. All columns are to be minimised."""
    order = sorted(range(len(costs)), key=lambda i: (*costs[i], i))
    front: list[int] = []
    for i in order:  # one that dominates comes before what it dominates
        if not any(all(a <= b for a, b in zip(costs[j], costs[i], strict=True)) for j in front):
            front.append(i)
    return sorted(front)


@dataclass(frozen=True)
class Configuration:
    """A GPU with its values and a method. columns: what identifies it. values: of the objectives, across its
    inputs and seeds; None where one of them failed or is missing."""

    columns: Mapping[str, Any]
    values: tuple[float | None, ...]


def configurations(
    table: pl.DataFrame, keys: Sequence[str], wanted: Sequence[Objective], how: str = "geomean"
) -> list[Configuration]:
    """The configurations of a table, by the columns `keys`, in its order.

    Raises StudyError for an expression whose columns there are not.
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    cases = max((len(rows) for rows in groups.values()), default=0)
    found = []
    for key, rows in groups.items():
        full = len(rows) == cases and all(row["status"] == DONE for row in rows)
        given = [with_specification(row) for row in rows] if full else []
        values = tuple(across(how, [each.expression.number(row) for row in given]) for each in wanted)
        found.append(Configuration(dict(zip(keys, key, strict=True)), values))
    return found


def front(found: Sequence[Configuration], wanted: Sequence[Objective]) -> list[Configuration]:
    """The Pareto front; with one objective, the best."""
    known = [each for each in found if None not in each.values]
    costs = [
        [
            objective.cost(value)
            for objective, value in zip(wanted, each.values, strict=True)
            if value is not None
        ]
        for each in known
    ]
    return [known[i] for i in non_dominated(costs)]


@dataclass(frozen=True)
class Effect:
    """How much of the variance of the logarithm of a value within inputs follows from one parameter, or from
    two together beyond each of them. names: the parameters. share: of the variance, 0 to 1."""

    names: tuple[str, ...]
    share: float


def effects(table: pl.DataFrame, names: Sequence[str], value: str = "cycles") -> list[Effect]:
    """Effects of parameters and of their pairs, the largest first: an analysis of variance (Montgomery,
    "Design and Analysis of Experiments", chapter 5), exact where all combinations are there. Of inputs of
    which some are missing, only those with the fewest missing count."""
    rows = table.filter(pl.col("status") == DONE, pl.col(value) > 0)
    rows = rows.filter(pl.len().over("input") == pl.len().over("input").max())
    rows = rows.with_columns(pl.col(value).log().alias("log"))
    rows = rows.with_columns((pl.col("log") - pl.col("log").mean().over("input")).alias("log"))
    total = float((rows["log"] ** 2).sum()) if len(rows) else 0.0
    if total <= len(rows) * np.finfo(np.float64).eps ** 2:
        return []
    single = {name: _between(rows, [name]) for name in names}
    found = [Effect((name,), squares / total) for name, squares in single.items()]
    for a, b in combinations(names, 2):
        squares = _between(rows, [a, b]) - single[a] - single[b]
        found.append(Effect((a, b), max(0.0, squares / total)))
    return sorted(found, key=lambda effect: -effect.share)


def _between(rows: pl.DataFrame, names: Sequence[str]) -> float:
    """Sum of squares between the groups of these parameters' values."""
    groups = rows.group_by(names, maintain_order=True).agg(pl.col("log").mean(), pl.len())
    return float((groups["len"] * groups["log"] ** 2).sum())


def varying(table: pl.DataFrame, names: Iterable[str]) -> list[str]:
    """The columns with more than one value."""
    return [name for name in names if table[name].n_unique() > 1]


def by_value(table: pl.DataFrame, name: str, value: str = "cycles") -> pl.DataFrame:
    """For each input and each value of a parameter, the geometric mean of a column over all else, relative to
    the input's geometric mean: columns `input`, the parameter, `relative`."""
    rows = table.filter(pl.col("status") == DONE, pl.col(value) > 0)
    rows = rows.with_columns(pl.col(value).log().alias("log"))
    return (
        rows.with_columns((pl.col("log") - pl.col("log").mean().over("input")).alias("log"))
        .group_by(["input", name], maintain_order=True)
        .agg(pl.col("log").mean().exp().alias("relative"))
    )
