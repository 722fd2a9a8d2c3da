"""Ctrl-C, SIGTERM, time limits: stopping a run without losing finished launches, or the request."""

from __future__ import annotations

import importlib
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from numbers import Real
from types import FrameType
from typing import Any

from simt.errors import SimtError
from simt.options import whole_option

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
_LEAST_TIMEOUT, _MOST_TIMEOUT = 1e-3, 1_000_000_000  # seconds
_STOPPING = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


# What `signal` wraps: numbers where that makes enums, which takes longer than the rest for a small launch.
_signal: Any = importlib.import_module("_signal")


class Stopped(KeyboardInterrupt):
    """A signal that ends the run. number: of the signal; SIGALRM: its time limit is reached."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _Request:
    """What signals have asked the main thread for.

    number: of the signal, until its exception leaves the `stoppable` in which it arrived; 0: none.
    deferred: the first signal only sets the number. contexts: how many handle signals.
    """

    number = 0
    deferred = False
    contexts = 0


_request = _Request()


def _stop(number: int, frame: FrameType | None) -> None:
    is_first = not _request.number
    _request.number = number
    if not (_request.deferred and is_first):
        raise Stopped(number)


def number_of(stop: KeyboardInterrupt) -> int:
    """The signal that raised it."""
    return int(getattr(stop, "number", signal.SIGINT))


def is_alarm(number: int) -> bool:
    """Whether a signal means that the run's time limit is reached."""
    return number == getattr(signal, "SIGALRM", None)


def raise_requested() -> None:
    """Raises Stopped if a signal has asked to stop. Its exception may have been lost: Python ignores what is
    raised in `__del__` and in callbacks, and a program may have caught it."""
    if _request.number and threading.current_thread() is threading.main_thread():
        raise Stopped(_request.number)


@contextmanager
def _handling(numbers: Collection[int]) -> Iterator[None]:
    """Within the context, these signals call `_stop`, unless the program has handlers of its own."""
    before = {n: _signal.getsignal(n) for n in numbers}
    before = {n: h for n, h in before.items() if h in (signal.SIG_DFL, signal.default_int_handler)}
    if not _request.contexts:
        _request.number, _request.deferred = 0, False
    for number in before:
        _signal.signal(number, _stop)
    _request.contexts += 1
    try:
        yield
    finally:
        _request.contexts -= 1
        if not _request.contexts:  # whoever called has the exception, and may go on
            _request.number = 0
        for number, handler in before.items():
            _signal.signal(number, handler)


@contextmanager
def stoppable(timeout: float | None = None) -> Iterator[None]:
    """Within the context, Ctrl-C, SIGTERM and SIGHUP raise Stopped. So does a timer after `timeout` seconds,
    whatever Python code is running. A request is never dropped: where its exception is lost, the next launch
    raises it, or at the latest the end of the context. Has no effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _handling(_STOPPING):
        alarm = (
            timeout is not None and hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _stop
        )
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, timeout or 0.0)
        try:
            yield
            raise_requested()
        except KeyboardInterrupt:
            _request.number = 0
            raise
        finally:
            if alarm:
                signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def deferred_stop() -> Iterator[Callable[[], int]]:
    """Within the context, the first Ctrl-C (or other signal handled by `stoppable`) interrupts nothing, such
    as taking over finished launches. The function yielded returns the signal's number, or 0 if there was
    none. The end of the context raises Stopped, unless a KeyboardInterrupt ends it.

    The second signal interrupts immediately. Python delivers signals only to the main thread; other threads,
    and signals for which the program has its own handler, are not affected.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: 0
        return
    with _handling(_STOPPING[:1]):
        outer, _request.deferred = _request.deferred, True
        is_taken = False
        try:
            yield lambda: _request.number
        except KeyboardInterrupt:
            is_taken = True
            raise
        finally:
            _request.deferred = outer
            if not (is_taken or outer):
                raise_requested()


class Limits:
    """Limits of a run.

    max_cycles: core cycles, approximately; None: no limit. timeout: seconds from now.
    """

    def __init__(self, max_cycles: int | None = None, timeout: float | None = None) -> None:
        if timeout is not None and not (isinstance(timeout, Real) and 0 < timeout <= _MOST_TIMEOUT):
            raise SimtError(
                f"timeout is {timeout!r} seconds, expected a number above 0, up to {_MOST_TIMEOUT:,}"
            )
        self.max_cycles = None if max_cycles is None else whole_option("max_cycles", max_cycles)
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
        return self.seconds_left == 0

    @property
    def seconds_left(self) -> float | None:
        """None: no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def timeout_left(self) -> float | None:
        """The timeout of what still belongs to the run."""
        return None if self.seconds_left is None else max(_LEAST_TIMEOUT, self.seconds_left)

    def text(self, why: str) -> str:
        """The limit reached, as text for messages."""
        if why == "max_cycles":
            return f"the limit of {self.max_cycles:,} core cycles is reached"
        return f"the limit of {self._timeout:g} seconds is reached"
