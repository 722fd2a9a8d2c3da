"""Study: many simulations, described in one file."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from simt.errors import StudyError
from simt.files import is_folder, require_file, write_text
from simt.study.description import StudyDescription, describe, read_keys
from simt.study.inputs import identity
from simt.study.progress import StudyProgress, reporting
from simt.study.schedule import Job, Schedule
from simt.study.simulation import DONE, FAILED, PointOutcome, encoded, joined, measured, simulate_work
from simt.study.space import Space, StudyPoint
from simt.study.store import RUN_COLUMNS, Store
from simt.study.workers import Submit, workers

if TYPE_CHECKING:
    from simt.study.search import Found

_KEYS = "study.json"
"""What the study was, in the folder of its results."""
Report = Callable[[StudyProgress], None] | bool | None


@dataclass(frozen=True)
class Ran:
    """What a run of a study did.

    Numbers of points: of the study; simulated in this run; taken over from other studies; failed, in this run
    or before.
    """

    points: int
    simulated: int
    reused: int
    failed: int
    seconds: float


class Study:
    """Many simulations: a product of inputs, GPUs, values of the specification, methods and seeds.

    keys: those of a study file (docs/studies.md), such as `inputs`, `gpus`, `set`, `where`, `results`.
    folder: what relative paths start from; by default the current one.

        study = simt.Study(inputs=["saxpy"], set={"sm.count": [40, 80]}, results="out")
        study.run()
        print(study.table())

    Raises StudyError for keys and values that a study cannot have.
    """

    def __init__(self, *, folder: str | os.PathLike[str] = ".", **keys: Any) -> None:
        self.description = describe(keys, "study")
        self.file, self._keys, self._folder = "study", keys, Path(folder)
        self.results = self._folder / (self.description.results or "study.results")
        """The folder of the results."""
        self.space = Space(self.description, self._folder, self.file)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """The study that a TOML file describes, or whose results are in a folder. Raises StudyError."""
        path = Path(path)
        if is_folder(path):
            return cls._of_results(path)
        keys = read_keys(path)
        study = cls.__new__(cls)
        study.description = describe(keys, str(path))
        study.file, study._keys, study._folder = str(path), keys, path.parent
        study.results = path.parent / (study.description.results or f"{path.stem}.results")
        study.space = Space(study.description, path.parent, str(path))
        return study

    @classmethod
    def _of_results(cls, folder: Path) -> Study:
        file = folder / _KEYS
        require_file(file, "a folder with the results of a study", StudyError)
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            study = cls(folder=kept["folder"], **kept["keys"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StudyError(f"{file}: not written by a study: {error}") from None
        study.file, study.results = str(folder), folder
        return study

    @cached_property
    def points(self) -> list[StudyPoint]:
        """All points, in order. Reads inputs, plans and specifications. Raises StudyError, TraceError, ..."""
        return self.space.points()

    @cached_property
    def _store(self) -> Store:
        share = self.description.share
        return Store(self.results, self.space.axes, None if share is None else self._folder / share)

    def run(self, progress: Report = None, *, retry: bool = False) -> Ran:
        """Simulates the points that nobody has simulated yet, on the workers of the description.

        progress: True for a bar on the terminal (otherwise a line every 30 seconds), or a function.
        retry: also points that have failed.

        Each finished point is kept, whatever happens next; a point that fails becomes a row with its error.
        Raises StudyError where workers cannot be started or another run writes to the same folder.
        """
        with reporting(progress) as report, self.session(self.points) as session:
            return session.run(self.points, report, retry)

    @contextmanager
    def session(self, points: Sequence[StudyPoint] | None = None) -> Iterator[StudySession]:
        """Holds the folder of the results, and starts workers when there is something to do.

        points: all of the study; None for a search, which does not know them.
        """
        with self._store.writing():
            keys = {"folder": str(self._folder.absolute()), "keys": self._keys}
            write_text(self.results / _KEYS, json.dumps(keys, indent=1, default=str), StudyError)
            if points is None:
                own = list(self._store.own)
                rows = self._store.rows().select(own).iter_rows(named=True)
                points = [point for row in rows if (point := self.space.of(row)) is not None]
            self._store.begin(points)
            with ExitStack() as stack:
                try:
                    yield StudySession(self.description, self._store, stack)
                finally:
                    self._store.publish()

    def table(self, how: bool = True) -> pl.DataFrame:
        """A row for each point that has ended, in the order of the study.

        Columns: those that identify the point (input, gpu, the keys of `set`, method, seed), status, error,
        cycles, seconds, joules, all counters, the specification and versions. how: with the columns that its
        outcome does not depend on: wall_seconds, host, finished.
        """
        frame = self._store.rows()
        ranks: dict[str, list[Any]] = {
            axis.name: [value.shown for value in axis.values] for axis in self.space.axes
        }
        ranks |= {"input": list(self.space.inputs), "gpu": list(self.space.gpus)}
        ranks |= {"method": list(self.space.methods), "seed": self.description.seeds}
        order = [
            pl.col(name).replace_strict(
                ranks[name], range(len(ranks[name])), default=len(ranks[name]), return_dtype=pl.Int64
            )
            for name in self._store.own
        ]
        return frame.sort(order).select(name for name in frame.columns if how or name not in RUN_COLUMNS)

    def optimise(self, progress: Report = None) -> Found:
        """Searches the values of `set` for the best ones, as `search` in the description says.

        Raises StudyError without `search`; otherwise as `run`.
        """
        from simt.study.search import search

        return search(self, progress)

    def write_page(self, path: str | os.PathLike[str]) -> None:
        """Writes one HTML page: tables, Pareto front, effects of parameters. Raises StudyError."""
        from simt.study.page import write

        write(self, Path(path))

    def __repr__(self) -> str:
        return f"Study({self.file!r}: {self.space.size:,} points, results in {self.results})"


class StudySession:
    """Runs points of a study whose folder this process holds; several times in a search."""

    def __init__(self, description: StudyDescription, store: Store, stack: ExitStack) -> None:
        self._description, self._store, self._stack = description, store, stack
        self._workers: tuple[Submit, int] | None = None

    def run(self, points: Sequence[StudyPoint], report: Callable[[StudyProgress], None], retry: bool) -> Ran:
        """See `Study.run`."""
        start = time.monotonic()
        open_ = [point for point in points if self._store.status(point) != DONE]
        reused = self._store.find(open_) if open_ else 0
        pending = [
            point
            for point in open_
            if (status := self._store.status(point)) is None or (retry and status == FAILED)
        ]
        if pending:
            self._simulate(points, pending, report)
        failed = sum(self._store.status(point) == FAILED for point in points)
        return Ran(len(points), len(pending), reused, failed, time.monotonic() - start)

    def outcomes(self, points: Sequence[StudyPoint]) -> list[dict[str, Any]]:
        """Rows of points that have ended, in their order."""
        rows = {row["point"]: row for row in self._store.rows().iter_rows(named=True)}
        return [rows[point.digest] for point in points]

    def _simulate(
        self,
        points: Sequence[StudyPoint],
        pending: Sequence[StudyPoint],
        report: Callable[[StudyProgress], None],
    ) -> None:
        if self._workers is None:
            run, given = self._description.run, self._description.workers
            logs = self._store.folder / "parsl"
            self._workers = self._stack.enter_context(
                workers(given, run.threads, logs, simulate_work, identity())
            )
        tracker, start = _Tracker(self._store), time.monotonic()
        again = {point.digest for point in pending}
        failed = sum(self._store.status(p) == FAILED for p in points if p.digest not in again)

        def finished(ended: list[tuple[Job, PointOutcome]]) -> None:
            nonlocal failed
            rows = tracker.finished(ended)
            if rows:
                self._store.add(rows)
            failed += sum(outcome.status == FAILED for _, outcome in rows)

        def tell() -> None:
            report(
                StudyProgress(
                    done=len(points) - tracker.open,
                    total=len(points),
                    failed=failed,
                    seconds=time.monotonic() - start,
                    seconds_left=schedule.seconds_left(),
                    latest=tracker.latest,
                )
            )

        schedule = Schedule(*self._workers, self._description.workers.batch_seconds, finished, tell)
        schedule.run(tracker.jobs(pending))


class _Tracker:
    """Which jobs belong to which point, and what of a point is done."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pieces: dict[str, dict[int, bytes | None]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self.open = 0
        self.latest = ""

    def jobs(self, points: Sequence[StudyPoint]) -> list[Job]:
        """The jobs of points: one each, or those of its pieces that are not finished."""
        found = []
        self.open = len(points)
        for point in points:
            works = point.pieces()
            kind = f"{point.columns['input']} {point.columns['method']}"
            if point.spread is None:
                found.append(Job(works[0], kind, (point, None)))
                continue
            done = self._store.pieces(point)
            self._pieces[point.digest] = {number: done.get(number) for number in range(len(works))}
            left = [number for number, part in self._pieces[point.digest].items() if part is None]
            # A point whose pieces are all there, but not its row, needs one of them to become complete.
            found += [Job(works[n], f"{kind} piece", (point, n)) for n in left or [0]]
        return found

    def finished(self, ended: Sequence[tuple[Job, PointOutcome]]) -> list[tuple[StudyPoint, PointOutcome]]:
        """Rows of the points that are complete now."""
        rows = []
        for job, outcome in ended:
            point, number = job.owner
            if number is not None:
                found = self._with_piece(point, number, outcome)
                if found is None:
                    continue
                outcome = found
            rows.append((point, outcome))
            self.open -= 1
            self.latest = point.label
        return rows

    def _with_piece(self, point: StudyPoint, number: int, outcome: PointOutcome) -> PointOutcome | None:
        """The outcome of a point whose last piece this is, or whose first that fails; else None."""
        parts = self._pieces.get(point.digest)
        self._seconds[point.digest] += outcome.wall_seconds
        if parts is None:  # another piece has failed
            return None
        if outcome.status == FAILED:
            del self._pieces[point.digest]
            return replace(outcome, error=f"piece {number + 1} of {len(parts)}: {outcome.error}")
        assert outcome.result is not None
        parts[number] = outcome.result
        self._store.add_piece(point, number, outcome.result)
        if any(part is None for part in parts.values()):
            return None
        del self._pieces[point.digest]
        whole = joined([part for part in parts.values() if part is not None], point.work.plan)
        self._store.forget_pieces(point)
        return replace(
            outcome,
            values=measured(whole),
            result=encoded(whole) if point.work.keep else None,
            wall_seconds=self._seconds[point.digest],  # of all pieces of this run
        )
