"""Exclusive use of a GPU."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

from simt.errors import LaunchError


class _Running:
    """A context in which the engine runs for the thread that holds the GPU: callbacks on this thread must not
    enter again."""

    active = False

    def __enter__(self) -> None:
        self.active = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.active = False


class Exclusive:
    """Lets one thread at a time use a GPU: `with exclusive: ...`. It is reentrant.

    Memory that is dropped (`drop`, from `__del__`, which may run at any point of any thread) is freed when
    no thread holds it: never during a launch, and without waiting for another thread.

    free: gives memory back, by address.
    """

    def __init__(self, free: Callable[[int], Any]) -> None:
        self._free = free
        self._lock = threading.RLock()
        self._depth = 0
        self.running = _Running()
        self._dropped: deque[int] = deque()

    def __enter__(self) -> None:
        self._lock.acquire()
        if self.running.active:
            self._lock.release()
            raise LaunchError(
                "the GPU is running a launch and cannot be used by functions called from it (a controller, "
                "standard output): use it after the launch has ended"
            )
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        self._lock.release()
        if self._dropped:
            self._free_dropped()

    def drop(self, address: int) -> None:
        """Frees memory as soon as no thread holds the GPU."""
        self._dropped.append(address)
        self._free_dropped()

    def _free_dropped(self) -> None:
        # Who does not get the lock leaves it to who has it: that one looks again after releasing it.
        while self._dropped and self._lock.acquire(blocking=False):
            try:
                if self._depth:
                    return
                while self._dropped:
                    self._free(self._dropped.popleft())
            finally:
                self._lock.release()
