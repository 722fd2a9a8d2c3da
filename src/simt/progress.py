"""Progress of a simulation, shown as a bar on a terminal, or as a line from time to time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from simt.names import short_name

LINE_SECONDS = 30.0
_Progress = TypeVar("_Progress")


@dataclass(frozen=True)
class Progress:
    """The argument of a progress callback."""

    phase: str  # "reading" while traces are converted into stores, then "simulating"
    fraction: float  # of the phase, from 0 to 1
    seconds: float  # since the start of the phase
    launches_done: int
    launches_total: int
    cycle: int = 0
    warp_instructions: int = 0
    running: tuple[str, ...] = ()  # names of the running launches

    @property
    def seconds_left(self) -> float | None:
        """Seconds left in the phase at the current speed; None if unknown."""
        return self.seconds * (1 - self.fraction) / self.fraction if self.fraction > 0 else None


def rate(per_second: float) -> str:
    """A number per second, such as `1.23 M/s`."""
    for unit, scale in ((" G", 1e9), (" M", 1e6), (" K", 1e3)):
        if per_second >= scale:
            return f"{per_second / scale:.3g}{unit}/s"
    return f"{per_second:.3g} /s"


def unseen(progress: object) -> None:
    """What `Reporter.showing` gives where nothing is shown."""


class Reporter(Generic[_Progress]):
    """Shows the progress of something.

    progress: a function that is called a few times a second; True for a bar if standard error is a
        terminal, or else a line every LINE_SECONDS; None or False for none. bar: shows a bar. text: the
        line, and whether it is the last.
    """

    def __init__(
        self,
        progress: Callable[[_Progress], None] | bool | None,
        bar: Callable[[], AbstractContextManager[Callable[[_Progress], None]]],
        text: Callable[[_Progress], tuple[str, bool]],
    ) -> None:
        self._progress = progress
        self._bar = bar
        self._text = text
        self._last_line = time.monotonic()

    @contextmanager
    def showing(self) -> Iterator[Callable[[_Progress], None]]:
        """The function to call while something runs."""
        if callable(self._progress):
            yield self._progress
        elif not self._progress:
            yield unseen
        elif sys.stderr.isatty():
            with self._bar() as show:
                yield show
        else:
            yield self._line

    def _line(self, p: _Progress) -> None:
        now, (text, last) = time.monotonic(), self._text(p)
        if now - self._last_line < LINE_SECONDS and not last:
            return
        self._last_line = now
        with suppress(OSError, ValueError):  # a closed pipe or a full disk must not stop what runs
            print(text, file=sys.stderr, flush=True)


def reporter(progress: Callable[[Progress], None] | bool | None) -> Reporter[Progress]:
    """Shows the progress of runs, one after the other."""
    return Reporter(progress, _progress_bar, lambda p: (_text(p), False))


def reporting(
    progress: Callable[[Progress], None] | bool | None,
) -> AbstractContextManager[Callable[[Progress], None]]:
    """`reporter(progress).showing()`, for a single run."""
    return reporter(progress).showing()


def _text(p: Progress) -> str:
    what = _cut(short_name(p.running[0])) if p.running else p.phase
    return (
        f"{duration(p.seconds)}: {what}, {min(p.launches_done + 1, p.launches_total)} of "
        f"{p.launches_total}, {p.fraction:.0%}{_detail(p)}"
    )


def _detail(p: Progress) -> str:
    detail = ""
    if p.cycle:
        speed = rate(p.warp_instructions / p.seconds) if p.seconds > 0 else "-"
        detail += f" · {p.cycle:,} cycles · IPC {p.warp_instructions / p.cycle:.3g} · {speed} warp inst"
    if p.seconds_left is not None and p.seconds > 1:
        detail += f" · {duration(p.seconds_left)} left"
    return detail


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], None]]:
    """Shows a bar on standard error: cycles, launches, warp instructions per second, time left."""
    import rich.progress as rp
    from rich.console import Console

    bar = rp.Progress(
        rp.TextColumn("{task.description}", markup=False),
        rp.BarColumn(bar_width=24),
        rp.TaskProgressColumn(),
        rp.TextColumn("launch {task.fields[launches]}{task.fields[detail]}"),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=1.0, launches="-", detail="")

        def show(p: Progress) -> None:
            bar.update(
                task,
                completed=p.fraction,
                description=_cut(short_name(p.running[0])) if p.running else p.phase,
                launches=f"{min(p.launches_done + 1, p.launches_total)}/{p.launches_total}",
                detail=_detail(p),
            )

        yield show


def _cut(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
