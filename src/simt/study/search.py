"""Searches the values of a study for the best ones, with Optuna's samplers.

Assignments are chosen several at a time, simulated, and told to the sampler in the order in which they were
chosen. A search thus depends on its seed and on the outcomes only, not on which worker was fast: a search
that is continued makes the same choices again, finds their points in the folder, and goes on.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl

from simt.errors import StudyError
from simt.extras import explained
from simt.study.analysis import Objective, across, non_dominated, objectives, with_specification
from simt.study.description import SearchTable
from simt.study.progress import StudyProgress, reporting
from simt.study.simulation import DONE
from simt.study.space import Axis, AxisValue, StudyPoint

if TYPE_CHECKING:
    from simt.study.study import Report, Study, StudySession

_WORST = 1e300
"""The value of what has none. Its constraint is violated, so that samplers do not compare it."""


@dataclass(frozen=True)
class Trial:
    """An assignment of values that was tried.

    values: of each key of `set`. objectives: their values; None where there are none.
    status: "done", "outside" (a constraint is violated) or "failed"; then `why` says more.
    """

    values: Mapping[str, Any]
    objectives: tuple[float | None, ...]
    status: str
    why: str = ""


@dataclass(frozen=True)
class Found:
    """What a search found.

    objectives: expressions. trials: in the order in which they were chosen, each assignment once.
    best: the trials of the Pareto front; with one objective, one. size: assignments that there are.
    simulated, reused: points.
    """

    objectives: tuple[Objective, ...]
    trials: tuple[Trial, ...]
    best: tuple[Trial, ...]
    size: int
    simulated: int
    reused: int

    def table(self) -> pl.DataFrame:
        """A row for each trial: values, objectives, status, whether it is among the best."""
        names = [objective.name for objective in self.objectives]
        rows = [
            {
                **trial.values,
                **dict(zip(names, trial.objectives, strict=True)),
                "status": trial.status,
                "why": trial.why,
                "best": trial in self.best,
            }
            for trial in self.trials
        ]
        return pl.DataFrame(rows, infer_schema_length=None)


def search(study: Study, progress: Report) -> Found:
    """See `Study.optimise`."""
    given = study.description.search
    if given is None:
        raise StudyError(f"{study.file}: search: missing; it says what to minimise or maximise")
    axes = [axis for axis in study.space.axes if len(axis.values) > 1]
    if not axes:
        raise StudyError(f"{study.file}: set: no key has several values, so there is nothing to search")
    with reporting(progress) as report, study.session() as session:
        return _Searching(study, given, axes).run(session, report)


class _Searching:
    def __init__(self, study: Study, given: SearchTable, axes: Sequence[Axis]) -> None:
        self._space, self._given, self._axes = study.space, given, axes
        self._objectives = tuple(objectives(given.minimise, given.maximise))
        self._size = 1
        for axis in axes:
            self._size *= len(axis.values)
        self._trials: dict[tuple[int, ...], Trial] = {}
        self._excess: dict[tuple[int, ...], list[float]] = {}
        self._simulated = self._reused = 0

    def run(self, session: StudySession, report: Any) -> Found:
        """Chooses, simulates and tells until there are enough trials, or all assignments have been tried."""
        asked, optuna_study = 0, self._begin()
        distributions = {axis.name: _distribution(axis) for axis in self._axes}
        while asked < self._given.trials and len(self._trials) < self._size:
            together = min(self._given.together, self._given.trials - asked)
            chosen = [optuna_study.ask(distributions) for _ in range(together)]
            keys = [tuple(trial.params[axis.name] for axis in self._axes) for trial in chosen]
            self._simulate(
                dict.fromkeys(key for key in keys if key not in self._trials), session, report, asked
            )
            for trial, key in zip(chosen, keys, strict=True):
                for number, excess in enumerate(self._excess[key]):
                    trial.set_constraint(str(number), excess)
                values = self._trials[key].objectives
                optuna_study.tell(trial, [_WORST if value is None else value for value in values])
            asked += together
        return self._found()

    def _begin(self) -> Any:
        try:
            import optuna
        except ModuleNotFoundError as error:
            raise explained(error, "searching") from error
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        given, samplers = self._given, optuna.samplers
        sampler = {
            "tpe": lambda: samplers.TPESampler(seed=given.seed, multivariate=True, constant_liar=True),
            "random": lambda: samplers.RandomSampler(seed=given.seed),
            "nsga2": lambda: samplers.NSGAIISampler(seed=given.seed, population_size=2 * given.together),
        }
        directions = ["maximize" if each.maximise else "minimize" for each in self._objectives]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return optuna.create_study(directions=directions, sampler=sampler[given.sampler]())

    def _simulate(
        self, keys: Mapping[tuple[int, ...], None], session: StudySession, report: Any, asked: int
    ) -> None:
        """Makes trials of assignments: simulates the points of those inside the constraints."""
        points: dict[tuple[int, ...], list[StudyPoint]] = {}
        for key in keys:
            try:
                points[key] = self._space.at(self._values(key))
            except StudyError as error:  # no GPU has these values
                self._keep(key, Trial(self._shown(key), self._nothing, "outside", str(error)), 1.0)
                continue
            if not points[key]:
                self._keep(key, Trial(self._shown(key), self._nothing, "outside", "left out by where"), 1.0)
            elif excess := self._known_excess(points[key]):
                text = ", ".join(each.text for each in self._given.within)
                self._keep(
                    key, Trial(self._shown(key), self._nothing, "outside", f"not within {text}"), excess
                )
            else:
                continue
            del points[key]
        every = list({point.digest: point for each in points.values() for point in each}.values())

        def tell(p: StudyProgress) -> None:
            share = p.done / p.total * len(points) if p.total else 0
            report(StudyProgress(asked + int(share), self._given.trials, p.failed, p.seconds, None, p.latest))

        ran = session.run(every, tell, retry=False)
        self._simulated += ran.simulated
        self._reused += ran.reused
        rows = dict(zip((p.digest for p in every), session.outcomes(every), strict=True))
        for key, each in points.items():
            self._judge(key, [rows[point.digest] for point in each])

    @property
    def _nothing(self) -> tuple[None, ...]:
        return (None,) * len(self._objectives)

    def _values(self, key: tuple[int, ...]) -> list[AxisValue]:
        """One value of each axis of the study; axes with one value only are not searched."""
        chosen = dict(zip((axis.name for axis in self._axes), key, strict=True))
        return [axis.values[chosen.get(axis.name, 0)] for axis in self._space.axes]

    def _shown(self, key: tuple[int, ...]) -> dict[str, Any]:
        return {axis.name: axis.values[i].shown for axis, i in zip(self._axes, key, strict=True)}

    def _known_excess(self, points: Sequence[StudyPoint]) -> float:
        """By how much constraints are violated that need no simulation; 0 if none is."""
        total = 0.0
        for constraint in self._given.within:
            for point in points:
                if all(name in point.row for name in constraint.names):
                    total += max(0.0, constraint.excess(point.row) or 0.0)
        return total

    def _judge(self, key: tuple[int, ...], rows: Sequence[Mapping[str, Any]]) -> None:
        """Makes a trial of the rows of its points."""
        shown = self._shown(key)
        if wrong := next((row for row in rows if row["status"] != DONE), None):
            self._keep(key, Trial(shown, self._nothing, "failed", f"{wrong['input']}: {wrong['error']}"), 1.0)
            return
        given = [with_specification(row) for row in rows]
        values = tuple(
            across(self._given.across, [each.expression.number(row) for row in given])
            for each in self._objectives
        )
        excess = [max((constraint.excess(row) or 0.0) for row in given) for constraint in self._given.within]
        if any(each > 0 for each in excess):
            violated = [c.text for c, each in zip(self._given.within, excess, strict=True) if each > 0]
            trial = Trial(shown, values, "outside", f"not within {', '.join(violated)}")
        elif None in values:
            trial = Trial(shown, values, "failed", "an objective has no value")
        else:
            trial = Trial(shown, values, "done")
        self._keep(key, trial, 1.0 if None in values else 0.0, excess)

    def _keep(
        self, key: tuple[int, ...], trial: Trial, missing: float, excess: Sequence[float] | None = None
    ) -> None:
        """missing: above 0 where the trial has no values. excess: of each constraint."""
        self._trials[key] = trial
        self._excess[key] = [missing, *(excess or [0.0] * len(self._given.within))]

    def _found(self) -> Found:
        done = [trial for trial in self._trials.values() if trial.status == "done"]
        costs = [
            [
                each.cost(v)
                for each, v in zip(self._objectives, trial.objectives, strict=True)
                if v is not None
            ]
            for trial in done
        ]
        best = tuple(done[i] for i in non_dominated(costs))
        trials = tuple(self._trials.values())
        return Found(self._objectives, trials, best, self._size, self._simulated, self._reused)


def _distribution(axis: Axis) -> Any:
    """Positions among the values: in order where they are numbers that ascend, else without an order."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    shown = [value.shown for value in axis.values]
    last = len(shown) - 1
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in shown)
    if numbers and all(a < b for a, b in zip(shown, islice(shown, 1, None), strict=False)):  # type: ignore[operator]
        return IntDistribution(0, last)
    return CategoricalDistribution(range(last + 1))
