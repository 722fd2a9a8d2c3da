"""Tasks of studies: all jobs end once, whatever workers and nodes do."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.errors import StudyError
from simt.study.schedule import Job, Schedule
from simt.study.simulation import DONE, FAILED, PointOutcome
from simt.study.workers import NodeLost, WorkerLost


class Workers:
    """Answers tasks at once.

    deadly: works that kill their worker. unlucky: works whose first tasks lose the node, and how many.
    """

    def __init__(
        self, deadly: Sequence[int] = (), unlucky: dict[int, int] | None = None, seconds: float = 0.01
    ):
        self.deadly, self.unlucky, self.seconds = set(deadly), dict(unlucky or {}), seconds
        self.tasks: list[list[int]] = []

    def submit(self, works: Sequence[int]) -> Future[list[PointOutcome]]:
        self.tasks.append(list(works))
        future: Future[list[PointOutcome]] = Future()
        lost = [work for work in works if self.unlucky.get(work, 0)]
        if self.deadly & set(works):
            future.set_exception(WorkerLost("worker 0"))
        elif lost:
            for work in lost:
                self.unlucky[work] -= 1
            future.set_exception(NodeLost("node 0"))
        else:
            future.set_result(
                [
                    PointOutcome(DONE, values={"cycles": float(work)}, wall_seconds=self.seconds)
                    for work in works
                ]
            )
        return future


def run(workers: Workers, count: int, number: int = 2, batch_seconds: float = 1.0) -> dict[int, PointOutcome]:
    ended: dict[int, PointOutcome] = {}

    def finished(found: list[tuple[Job, PointOutcome]]) -> None:
        for job, outcome in found:
            assert job.work not in ended
            ended[job.work] = outcome

    schedule = Schedule(workers.submit, number, batch_seconds, finished, lambda: None)
    schedule.run(Job(work, "kind", None) for work in range(count))
    assert schedule.seconds_left() == 0
    return ended


def test_short_jobs_share_tasks_and_the_last_ones_are_spread() -> None:
    workers = Workers()
    assert set(run(workers, 1000)) == set(range(1000))
    sizes = [len(task) for task in workers.tasks]
    assert sizes[:4] == [1, 1, 1, 1]  # nothing is known of them yet
    assert max(sizes) in (99, 100)  # a second's worth
    assert sizes[-1] == 1
    assert len(sizes) < 60


def test_long_jobs_are_alone() -> None:
    workers = Workers(seconds=5.0)
    run(workers, 50)
    assert {len(task) for task in workers.tasks} == {1}


def test_a_job_that_kills_its_worker_is_the_only_one_that_fails() -> None:
    ended = run(Workers(deadly=[3, 500, 501]), 1000)
    assert {work for work, outcome in ended.items() if outcome.status == FAILED} == {3, 500, 501}
    assert "process that simulated it died" in str(ended[500].error)


def test_jobs_of_a_lost_node_run_again_but_not_for_ever() -> None:
    ended = run(Workers(unlucky={1: 2, 2: 3, 600: 2, 700: 9}), 1000)
    assert {work for work, outcome in ended.items() if outcome.status == FAILED} >= {2, 700}
    assert ended[1].status == ended[0].status == ended[999].status == DONE
    assert "lost 3 times" in str(ended[2].error)


@given(
    st.integers(0, 60),
    st.sets(st.integers(0, 59)),
    st.integers(1, 5),
    st.floats(0.001, 3),
)
def test_every_job_ends_once(count: int, deadly: set[int], number: int, seconds: float) -> None:
    ended = run(Workers(deadly=sorted(deadly), seconds=seconds), count, number)
    assert set(ended) == set(range(count))
    assert {work for work, outcome in ended.items() if outcome.status == FAILED} == {
        work for work in deadly if work < count
    }


def test_what_has_ended_is_kept_when_the_study_stops() -> None:
    kept: list[int] = []
    pool = ThreadPoolExecutor(1)

    def submit(works: Sequence[int]) -> Future[list[PointOutcome]]:
        if works[0] == 3:
            raise KeyboardInterrupt
        future = pool.submit(lambda: [PointOutcome(DONE) for _ in works])
        future.result()
        return future

    schedule = Schedule(submit, 4, 1.0, lambda found: kept.extend(job.work for job, _ in found), lambda: None)
    with pytest.raises(KeyboardInterrupt):
        schedule.run(Job(work, "kind", None) for work in range(10))
    assert kept == [0, 1, 2]


def test_other_problems_end_the_study() -> None:
    def submit(works: Sequence[int]) -> Future[list[PointOutcome]]:
        future: Future[list[PointOutcome]] = Future()
        future.set_exception(StudyError("workers: no partition"))
        return future

    with pytest.raises(StudyError, match="no partition"):
        Schedule(submit, 1, 1.0, lambda _: None, lambda: None).run([Job(0, "kind", None)])
