"""Runs the engine in slices, so that progress is updated and a run can be stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simt.errors import SpecError
from simt.run.interruption import Limits

if TYPE_CHECKING:
    from simt import _engine
    from simt.spec.native import NativeSpec

SLICE_SECONDS = 0.2
"""How long a call of the engine takes."""
_NO_LIMIT = 1 << 62
"""Core cycles of a call that ends by time."""
NO_MEMORY = (
    "the host's memory does not suffice for a GPU of this specification and this launch; "
    "look for a value that is too large (`simt gpus show`), or simulate fewer launches at once"
)


def new_engine(
    spec: NativeSpec, threads: int = 1, window: int = 0, timeline_interval: int = 0
) -> _engine.Gpu:
    """The engine for a GPU of this specification. Raises SpecError if the host's memory is too small."""
    from simt import _engine

    try:
        return _engine.Gpu(spec, threads, window, timeline_interval)
    except (MemoryError, IndexError, OverflowError) as error:
        raise SpecError(f"{spec['name']}: {NO_MEMORY}") from error
    except ValueError as error:
        raise SpecError(f"{spec['name']}: {error}") from error


def run_slices(
    engine: _engine.Gpu,
    *,
    until: Sequence[int],
    is_over: Callable[[], bool],
    after_slice: Callable[[], None],
    limits: Limits,
    cycles_before: int,
    stop_requested: Callable[[], int],
    most: int | None = None,
    seconds: float | None = None,
) -> str:
    """Runs the engine until nothing is left to do, or it is stopped. Returns the reason: "" (all done, or
    paused), "interrupted", "max_cycles" or "timeout".

    until: after which launches and transfers the engine pauses, see `Session.run`.
    is_over: queues what comes next and tells whether nothing is left. after_slice: takes over what is
        finished, and reports. cycles_before: of earlier engines of the same run, which count for the limits.
        stop_requested: see `deferred_stop`. most: core cycles after which it pauses. seconds: of the host,
        after which it pauses.
    """
    slice_seconds = SLICE_SECONDS if seconds is None else min(seconds, SLICE_SECONDS)
    pause = None if seconds is None else time.monotonic() + seconds
    while True:
        if stop_requested():
            return "interrupted"
        if is_over():
            return ""
        cycle = cycles_before + engine.cycle
        if why := limits.reached(cycle):
            return why
        if most is not None:  # in one slice: how far it goes must not depend on the host's speed
            engine.run(limits.cycles_left(cycle, most), until)
            after_slice()
            return ""
        engine.run(limits.cycles_left(cycle, _NO_LIMIT), until, slice_seconds)
        after_slice()
        if pause is not None and time.monotonic() >= pause:
            return ""
