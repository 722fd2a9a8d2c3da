"""Runs the engine in slices, so that progress is updated and a run can be stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from simt.errors import SpecError
from simt.run.interruption import Limits

# Core cycles per call of the engine while its speed is unknown; afterwards, calls take about SLICE_SECONDS.
FIRST_SLICE, LARGEST_SLICE = 1_000, 100_000_000
SLICE_SECONDS = 0.2
NO_MEMORY = (
    "the host's memory does not suffice for a GPU of this specification and this launch; "
    "look for a value that is too large (`simt gpus show`), or simulate fewer launches at once"
)


def new_engine(spec: dict[str, Any], **options: int) -> Any:
    """The engine for a GPU of this specification. Raises SpecError if the host's memory is too small."""
    from simt import _engine

    try:
        return _engine.Gpu(spec, **options)
    except (MemoryError, IndexError, OverflowError) as error:
        raise SpecError(f"{spec['name']}: {NO_MEMORY}") from error
    except ValueError as error:
        raise SpecError(f"{spec['name']}: {error}") from error


class _Slice:
    """Chooses the number of cycles per call of the engine, so that calls take about SLICE_SECONDS."""

    def __init__(self) -> None:
        self._cycles = FIRST_SLICE

    def run(self, engine: Any, most: int, until: Sequence[int]) -> None:
        """Runs the engine."""
        before, asked = time.monotonic(), min(self._cycles, most)
        end = engine.cycle + asked
        engine.run(asked, until)
        if engine.cycle < end:  # it has paused: too short to measure its speed
            return
        seconds = time.monotonic() - before
        growth = min(4.0, max(0.25, SLICE_SECONDS / max(seconds, 1e-6)))
        self._cycles = min(LARGEST_SLICE, max(1, int(self._cycles * growth)))


def run_slices(
    engine: Any,
    *,
    until: Sequence[int],
    is_over: Callable[[], bool],
    after_slice: Callable[[], None],
    limits: Limits,
    cycles_before: int,
    stop_requested: Callable[[], int],
) -> str:
    """Runs the engine until nothing is left to do, or it is stopped. Returns the reason: "" (all done),
    "interrupted", "max_cycles" or "timeout".

    until: after which launches and transfers the engine pauses, see `Session.run`.
    is_over: queues what comes next and tells whether nothing is left. after_slice: takes over what is
        finished, and reports. cycles_before: of earlier engines of the same run, which count for the limits.
        stop_requested: see `deferred_stop`.
    """
    size = _Slice()
    while True:
        if stop_requested():
            return "interrupted"
        if is_over():
            return ""
        cycle = cycles_before + engine.cycle
        if why := limits.reached(cycle):
            return why
        size.run(engine, limits.cycles_left(cycle, LARGEST_SLICE), until)
        after_slice()
