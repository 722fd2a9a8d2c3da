"""Ctrl-C, SIGTERM, time limits: stopping a run without losing finished launches."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from simt.errors import SimtError

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
_DEFERRED = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


class Stopped(KeyboardInterrupt):
    """A signal that ends the run. number: of the signal; SIGALRM: its time limit is reached."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def is_alarm(number: int) -> bool:
    """Whether a signal means that the run's time limit is reached."""
    return number == getattr(signal, "SIGALRM", None)


@contextmanager
def stoppable(timeout: float | None = None) -> Iterator[None]:
    """Within the context, SIGTERM and SIGHUP raise Stopped, as Ctrl-C raises KeyboardInterrupt. So does a
    timer after `timeout` seconds, whatever Python code is running. Has no effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [n for n in _DEFERRED if n != signal.SIGINT and signal.getsignal(n) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _stop)
    alarm = timeout is not None and hasattr(signal, "setitimer") and signal.SIGALRM in numbers
    if alarm:
        signal.setitimer(signal.ITIMER_REAL, timeout or 0.0)
    try:
        yield
    finally:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def deferred_stop() -> Iterator[Callable[[], int]]:
    """Makes the first Ctrl-C (or other signal handled by `stoppable`) set a flag, so that it cannot interrupt
    taking over finished launches. The function yielded returns the signal's number, or 0 if there was none.

    The second signal interrupts immediately. Python delivers signals only to the main thread; other threads,
    and signals for which the program has its own handler, are not affected.
    """
    requested = 0
    before: dict[int, Any] = {}

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        requested = number
        signal.signal(number, before[number])

    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _DEFERRED}
        before = {n: h for n, h in handlers.items() if h is signal.default_int_handler or h is _stop}
    for number in before:
        signal.signal(number, request)
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Limits:
    """Limits of a run.

    max_cycles: core cycles, approximately; None: no limit. timeout: seconds from now.
    """

    def __init__(self, max_cycles: int | None = None, timeout: float | None = None) -> None:
        if max_cycles is not None and max_cycles < 1:
            raise SimtError(f"max_cycles is {max_cycles}, expected 1 or more")
        if timeout is not None and not timeout > 0:
            raise SimtError(f"timeout is {timeout} seconds, expected more than 0")
        self.max_cycles = max_cycles
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    def cycles_left(self, cycle: int, most: int) -> int:
        return most if self.max_cycles is None else min(most, self.max_cycles - cycle)

    def reached(self, cycle: int) -> str:
        """ "max_cycles" or "timeout", which becomes the Result's status; empty while neither is reached."""
        if self.max_cycles is not None and cycle >= self.max_cycles:
            return "max_cycles"
        return "timeout" if self.late() else ""

    def late(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def text(self, why: str) -> str:
        """The limit reached, as text for messages."""
        if why == "max_cycles":
            return f"the limit of {self.max_cycles:,} core cycles is reached"
        return f"the limit of {self._timeout:g} seconds is reached"
