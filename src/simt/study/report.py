"""What `simt study show` and the page say of a study: tables as text and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from simt.errors import StudyError
from simt.study.analysis import (
    Configuration,
    Effect,
    Objective,
    configurations,
    effects,
    front,
    objectives,
    varying,
    with_specification,
)
from simt.study.expression import Expression
from simt.study.simulation import DONE, FAILED

if TYPE_CHECKING:
    from simt.study.study import Study


@dataclass(frozen=True)
class Report:
    """A study's table with what is to be said of it.

    columns: expressions shown besides what identifies a point. wanted: objectives.
    """

    study: Study
    columns: Sequence[Expression]
    wanted: Sequence[Objective]

    @classmethod
    def of(
        cls,
        study: Study,
        columns: Sequence[Expression] = (),
        wanted: Sequence[Objective] = (),
    ) -> Report:
        """With what the study file says where nothing else is asked for."""
        described = study.description
        for given in (described.show, described.search):
            if not wanted and given is not None:
                wanted = objectives(given.minimise, given.maximise)
        wanted = wanted or [Objective(Expression("cycles"))]
        columns = columns or described.show.columns
        if not columns:
            names = [
                "cycles",
                *(["joules"] if True in (described.options.power or [described.run.power]) else []),
                *(each.name for each in wanted),
            ]
            columns = [Expression(name) for name in dict.fromkeys(names)]
        return cls(study, columns, wanted)

    @cached_property
    def table(self) -> pl.DataFrame:
        """The study's table. Raises StudyError where it is empty."""
        table = self.study.table()
        if not len(table):
            raise StudyError(
                f"{self.study.results}: no point has ended; `simt study run {self.study.file}` runs the study"
            )
        return table

    @property
    def done(self) -> int:
        return int((self.table["status"] == DONE).sum())

    @property
    def failures(self) -> pl.DataFrame:
        return self.table.filter(pl.col("status") == FAILED)

    @cached_property
    def parameters(self) -> list[str]:
        """What identifies a point and has several values, the input aside."""
        names = [axis.name for axis in self.study.space.axes]
        return varying(self.table, ["gpu", *names, "method", "seed"])

    @cached_property
    def identifying(self) -> list[str]:
        """The columns of a point in tables."""
        return ["input", *self.parameters]

    def points(self, best_first: bool = True) -> tuple[list[str], list[list[Any]]]:
        """Header and rows of finished points; of each input, the best by the first objective first."""
        texts = [each.text for each in self.columns]
        rows = []
        for row in self.table.filter(pl.col("status") == DONE).iter_rows(named=True):
            given = with_specification(row)
            value = self.wanted[0].expression.number(given)
            cost = float("inf") if value is None else self.wanted[0].cost(value)
            cells = [row[name] for name in self.identifying]
            rows.append((cost, [*cells, *(each.value(given) for each in self.columns)]))
        if best_first:
            inputs = list(self.study.space.inputs)
            rows.sort(key=lambda each: (inputs.index(each[1][0]), each[0]))
        return [*self.identifying, *texts], [cells for _, cells in rows]

    @cached_property
    def configurations(self) -> list[Configuration]:
        """By GPU, values and method, across inputs and seeds."""
        keys = ["gpu", *(axis.name for axis in self.study.space.axes), "method"]
        search = self.study.description.search
        return configurations(self.table, keys, self.wanted, search.across if search else "geomean")

    @cached_property
    def front(self) -> list[Configuration]:
        """The Pareto front of the objectives; with one, the best configuration."""
        best = front(self.configurations, self.wanted)
        return sorted(best, key=lambda each: [v for v in each.values if v is not None])

    def front_table(self) -> tuple[list[str], list[list[Any]]]:
        keys = [name for name in self.parameters if name != "seed"]
        header = [*(keys or ["gpu"]), *(each.name for each in self.wanted)]
        rows = [[*(each.columns[key] for key in keys or ["gpu"]), *each.values] for each in self.front]
        return header, rows

    @cached_property
    def effects(self) -> list[Effect]:
        """What the first objective depends on, if it is a column, else cycles."""
        names = [name for name in self.parameters if name != "seed"]
        return effects(self.table, names, self.value)

    @property
    def value(self) -> str:
        """The column whose dependence on parameters is shown."""
        name = self.wanted[0].name
        return name if name in ("cycles", "seconds", "joules") and self._positive(name) else "cycles"

    def _positive(self, name: str) -> bool:
        return bool((self.table[name] > 0).any())


def shown(value: Any) -> str:
    """A value of a table as text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        whole = value.is_integer() or abs(value) >= 1000
        return f"{value:,.0f}" if whole and abs(value) < 1e15 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
