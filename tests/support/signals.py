"""Hand-made intervals for tests of controllers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from simt.control import Controller, Interval, LaunchView, Stop


def view(ctas: int = 100, wave: int = 10, **known: Any) -> LaunchView:
    """A launch of `ctas` CTAs of two warps on a GPU of two SMs that hold `wave` of them."""
    return LaunchView(
        index=0,
        id=1,
        name="kernel",
        grid=(ctas, 1, 1),
        block=(64, 1, 1),
        warps_per_cta=2,
        ctas_per_sm=wave // 2,
        sm_count=2,
        **known,
    )


def intervals(
    ipc: Sequence[float],
    finished: Sequence[int],
    *,
    cycles: int = 500,
    resident: int = 10,
    ctas: int = 100,
    lanes: int = 32,
    cta_instructions: int = 100,
    **rates: float,
) -> Iterator[Interval]:
    """Intervals with these instructions per cycle, and CTAs finished by their ends.

    rates: further counters, per cycle.
    """
    before = {
        "warp_instructions": 0,
        "thread_instructions": 0,
        "ctas": 0,
        "warps": 0,
        "ctas_finished": 0,
        "finished_instructions": 0,
        **dict.fromkeys(rates, 0),
    }
    for index, (rate, done) in enumerate(zip(ipc, finished, strict=True)):
        executed = before["warp_instructions"] + round(rate * cycles)
        dispatched = min(ctas, done + resident)
        now = {
            "warp_instructions": executed,
            "thread_instructions": lanes * executed,
            "ctas": dispatched,
            "warps": 2 * dispatched,
            "ctas_finished": done,
            "finished_instructions": cta_instructions * done,
            **{name: before[name] + round(per_cycle * cycles) for name, per_cycle in rates.items()},
        }
        difference = {name: n - before[name] for name, n in now.items()}
        yield Interval(index, index * cycles, (index + 1) * cycles, now, difference)
        before = now


def stop_of(controller: Controller, launch: LaunchView, signal: Iterator[Interval]) -> Interval | None:
    """The interval at whose end the controller stops; None if it never does."""
    decision = controller.begin(launch)
    for interval in signal:
        decision = controller.observe(interval)
        if isinstance(decision, Stop):
            return interval
    return None
