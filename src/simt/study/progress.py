"""Progress of a study, by point: a bar on a terminal, or a line from time to time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from simt.progress import Reporter, duration


@dataclass(frozen=True)
class StudyProgress:
    """The argument of a progress callback.

    done, total, failed: points. seconds: since the start. seconds_left: None while unknown.
    latest: a point that has ended.
    """

    done: int
    total: int
    failed: int
    seconds: float
    seconds_left: float | None
    latest: str

    @property
    def detail(self) -> str:
        """What a line says besides the number of points."""
        text = f" · {self.failed:,} failed" if self.failed else ""
        if self.seconds_left is not None:
            text += f" · {duration(self.seconds_left)} left"
        return f"{text} · {self.latest}" if self.latest else text


def reporting(
    progress: Callable[[StudyProgress], None] | bool | None,
) -> AbstractContextManager[Callable[[StudyProgress], None]]:
    """The function to call while a study runs. progress: as for `Study.run`."""
    return Reporter(progress, _bar, lambda p: (_text(p), p.done >= p.total)).showing()


def _text(p: StudyProgress) -> str:
    return f"{duration(p.seconds)}: {p.done:,} of {p.total:,} points{p.detail}"


@contextmanager
def _bar() -> Iterator[Callable[[StudyProgress], None]]:
    import rich.progress as rp
    from rich.console import Console

    bar = rp.Progress(
        rp.BarColumn(bar_width=24),
        rp.MofNCompleteColumn(),
        rp.TextColumn("{task.fields[detail]}"),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, detail="starting workers")
        yield lambda p: bar.update(task, completed=p.done, total=p.total, detail=p.detail)
