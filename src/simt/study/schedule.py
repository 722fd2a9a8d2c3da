"""Points and pieces as tasks for the workers: several short ones to a task, so that tasks cost little."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from simt.study.simulation import PointOutcome, failed
from simt.study.workers import NodeLost, Submit, WorkerLost

_NODE_LOSSES = 3  # of a task, before its points fail
_TASKS_LEFT = (
    4  # for each worker at least while there are points enough, so that all end at about the same time
)
_WAITING_SECONDS = 0.5


@dataclass(eq=False)
class Job:
    """Something to simulate. kind: jobs of a kind take about the same time. owner: whose it is."""

    work: Any
    kind: str
    owner: Any
    losses: int = field(default=0, init=False)


class Schedule:
    """Runs jobs on workers.

    submit, workers: of `workers`. batch_seconds: see the description of workers.
    finished: called with the jobs that have ended since the last call, and their outcomes.
    waiting: called now and then.

    How jobs are put together depends on how long they take, and no outcome does.
    """

    def __init__(
        self,
        submit: Submit,
        workers: int,
        batch_seconds: float,
        finished: Callable[[list[tuple[Job, PointOutcome]]], None],
        waiting: Callable[[], None],
    ) -> None:
        self._submit, self._workers, self._batch_seconds = submit, workers, batch_seconds
        self._finished, self._waiting = finished, waiting
        self._queue: deque[Job] = deque()
        self._alone: deque[Job] = deque()  # of a task that was lost: one of them may be to blame
        self._running: dict[Future[list[PointOutcome]], list[Job]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._start = time.monotonic()

    def run(self, jobs: Iterable[Job]) -> None:
        """Runs all jobs. Raises StudyError where no worker can run any."""
        self._queue.extend(jobs)
        try:
            while self._queue or self._alone or self._running:
                while (self._queue or self._alone) and len(self._running) < 2 * self._workers:
                    batch = self._batch()
                    self._running[self._submit([job.work for job in batch])] = batch
                done, _ = wait(self._running, _WAITING_SECONDS, FIRST_COMPLETED)
                self._take(done)
                self._waiting()
        except BaseException:  # what has ended is kept, whatever stops the study
            self._take([future for future in self._running if future.done()], lost=False)
            raise

    def seconds_left(self) -> float | None:
        """Until all jobs have ended, from what those of the same kind took; None while unknown."""
        left = [*self._queue, *self._alone, *(job for batch in self._running.values() for job in batch)]
        if not left:
            return 0.0
        if not self._counts:
            return None
        mean = sum(self._seconds.values()) / sum(self._counts.values())
        return sum(self._expected(job.kind, mean) for job in left) / self._workers

    def _expected(self, kind: str, otherwise: float) -> float:
        count = self._counts.get(kind, 0)
        return self._seconds[kind] / count if count else otherwise

    def _batch(self) -> list[Job]:
        """The next jobs that take about `batch_seconds` together; one whose time is unknown is alone."""
        if self._alone:
            return [self._alone.popleft()]
        most = math.ceil(len(self._queue) / (_TASKS_LEFT * self._workers))
        batch, seconds = [self._queue.popleft()], 0.0
        while self._queue and len(batch) < most:
            seconds += self._expected(batch[-1].kind, math.inf)
            if seconds + self._expected(self._queue[0].kind, math.inf) > self._batch_seconds:
                break
            batch.append(self._queue.popleft())
        return batch

    def _take(self, done: Iterable[Future[list[PointOutcome]]], lost: bool = True) -> None:
        """Takes what has ended. lost: also decides about tasks that did not come back."""
        ended: list[tuple[Job, PointOutcome]] = []
        problem: BaseException | None = None
        for future in list(done):
            batch, error = self._running.pop(future), future.exception()
            if error is None:
                ended += zip(batch, future.result(), strict=True)
            elif not lost:
                continue
            elif isinstance(error, WorkerLost):
                ended += self._blamed(batch, f"the process that simulated it died: {error}")
            elif isinstance(error, NodeLost):
                ended += self._again(batch, f"lost {_NODE_LOSSES} times with its node: {error}")
            else:
                problem = error
        for job, outcome in ended:
            self._seconds[job.kind] += outcome.wall_seconds
            self._counts[job.kind] += 1
        if ended:
            self._finished(ended)
        if problem is not None:
            raise problem

    def _blamed(self, batch: Sequence[Job], error: str) -> list[tuple[Job, PointOutcome]]:
        """A worker died. A job that was alone is blamed; of several each runs alone."""
        if len(batch) == 1:
            return [(batch[0], failed(error))]
        self._alone.extend(batch)
        return []

    def _again(self, batch: Sequence[Job], error: str) -> list[tuple[Job, PointOutcome]]:
        for job in batch:
            job.losses += 1
        self._alone.extend(job for job in batch if job.losses < _NODE_LOSSES)
        return [(job, failed(error)) for job in batch if job.losses >= _NODE_LOSSES]
