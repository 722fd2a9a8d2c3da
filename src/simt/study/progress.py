"""Progress of a study, by point: a bar on a terminal, or a line from time to time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from simt.run.progress import LINE_SECONDS, duration


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


class Reporter:
    """Shows progress. progress: as for `Study.run`."""

    def __init__(self, progress: Callable[[StudyProgress], None] | bool | None) -> None:
        self._progress = progress
        self._last_line = time.monotonic()

    @contextmanager
    def showing(self) -> Iterator[Callable[[StudyProgress], None]]:
        """The function to call while a study runs."""
        if callable(self._progress):
            yield self._progress
        elif not self._progress:
            yield lambda _: None
        elif sys.stderr.isatty():
            with _bar() as show:
                yield show
        else:
            yield self._line

    def _line(self, p: StudyProgress) -> None:
        now = time.monotonic()
        if now - self._last_line < LINE_SECONDS and p.done < p.total:
            return
        self._last_line = now
        with suppress(OSError, ValueError):  # a closed pipe or a full disk must not stop the study
            text = f"{duration(p.seconds)}: {p.done:,} of {p.total:,} points{p.detail}"
            print(text, file=sys.stderr, flush=True)


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
