"""Decides which waves of a launch are simulated in detail and which are left out."""

from __future__ import annotations

from simt.control.controller import GO_ON, Controller, Decision, Interval, LaunchView, Skip
from simt.control.projection import Projection
from simt.control.systematic import plan
from simt.control.systematic.constants import CONSTANTS
from simt.control.systematic.observations import Observations
from simt.control.systematic.projection import project
from simt.control.systematic.spread import allowance
from simt.control.systematic.windows import SkippedCtas, Window
from simt.control.waves import too_few
from simt.parameter_checks import integer, real

_NEVER = 1 << 40  # core cycles, beyond any launch


class Systematic(Controller):
    """Systematic sampling, as SMARTS does it for processors (Wunderlich et al., ISCA 2003), along the grid.

    Windows of one wave of CTAs are simulated in detail, and whole waves between them are left out: they are
    executed without timing, and their accesses go into the L2. The GPU stays full meanwhile: the CTAs that it
    holds continue, so that L1s, queues and the progress of CTAs against each other need no warming of their
    own. What is left out takes, for its instructions, as long as in the windows next to it. The first two
    waves and the end of the launch, in which the GPU empties, are always simulated.

    CTAs that begin together often end together, wave after wave, and wait for memory together. Therefore a
    window is a wave, from the dispatch of one CTA to that of the CTA a wave later; and therefore whole waves
    are left out: the last one is then as full as in the whole launch.

    error: relative half width of the interval of the cycles that is asked for: windows are added until it is
        reached, or the launch is over.
    confidence: of the intervals.
    windows: number of windows planned; long launches have one for every 32 waves. Two are enough if they
        agree, or if DRAM alone sets the pace, and in launches of less than 16 waves, in which one is if it is
        much as the wave before it. Five, where the use of DRAM lets the time of a wave vary, unless three
        agree.
    bias: allowance for what windows do not show, such as that the CTAs which continue meet an L2 that is not
        quite theirs: in waves, times the root of the waves left out.
    """

    method = "systematic"
    interval = _NEVER
    awaited_cta: int | None = 0

    def __init__(
        self, error: float = 0.05, confidence: float = 0.95, windows: int = 3, bias: float = 0.08
    ) -> None:
        self.error = error
        self.confidence = confidence
        self.windows = windows
        self.bias = bias

    def validate(self) -> None:
        real("error", self.error, 0, 1, open_low=True)
        real("confidence", self.confidence, 0, 1, open_low=True, open_high=True)
        integer("windows", self.windows, 1)
        real("bias", self.bias, 0, 1)

    def begin(self, launch: LaunchView) -> Decision:
        self._launch = launch
        self._seen = Observations(launch)
        self._wave = self._seen.wave
        self._refused = _refusal(launch)
        self.awaited_cta = None if self._refused else self._wave
        self._window_begin: Interval | None = None  # of the window under way
        self._before_skip: Interval | None = None  # a skip decided then takes effect
        self._to_leave_out = 0  # waves, before the next window
        self._step = 1  # waves left out together
        self._last_gap = False  # whether the planned windows are over
        return GO_ON

    @property
    def why_full(self) -> str:
        if self._refused:
            return self._refused
        if self._seen.done < 1:
            return "it ended before a window did"
        half_width = self._seen.relative_half_width(1.0, self.confidence) + self._allowance(1.0)
        return (
            f"its windows differ too much to leave out a wave at the error asked for, {self.error:.1%}: "
            f"± {half_width:.1%}"
        )

    def observe(self, interval: Interval) -> Decision:
        """Called where a window begins or ends, and where CTAs have been left out."""
        seen = self._seen
        # CTAs not yet dispatched, nor left out.
        left = self._launch.cta_count - interval.counters["ctas"] - interval.skipped_ctas
        if self._before_skip is not None:
            seen.gaps[-1].append(SkippedCtas.between(self._before_skip, interval))
            self._before_skip = None
            self._window_begin = None
            self.awaited_cta = self._launch.cta_count - left + round(CONSTANTS.warm_up * self._wave)
            if self._last_gap and left >= self._wave and seen.phase_changed():
                self._to_leave_out = 0
        else:
            if self._window_begin is not None:
                seen.add(Window(self._window_begin, interval))
                if seen.done:
                    self._to_leave_out = self._planned(left)
                    self._step = max(1, self._to_leave_out // CONSTANTS.steps_per_gap)
            self._window_begin = interval
            assert self.awaited_cta is not None
            self.awaited_cta += self._wave
        if left == 0 or (left < self._wave and not any(seen.gaps)):
            self.awaited_cta = None  # nothing more can be left out, and nothing is to be estimated
            return GO_ON
        waves = min(self._to_leave_out, left // self._wave)
        if waves <= 0:
            return GO_ON
        step = min(waves, self._step) if seen.gaps[-1] else 1
        self._to_leave_out = waves - step
        self._before_skip = interval
        return Skip(step * self._wave, recent=seen.l2_turnover)

    def _planned(self, left: int) -> int:
        """Waves to leave out before the next window. left: CTAs."""
        seen = self._seen
        done, waves_left = seen.done, left / self._wave
        waves = self._launch.cta_count / self._wave
        out = waves - seen.windows[-1].end.counters["ctas"] / self._wave
        error = self.error - self._allowance(out)
        if error <= 0:
            return 0
        use = seen.last_use
        if plan.follows_at_once(waves, done, use, after_gap=done > 1 and bool(seen.gaps[-2])):
            return 0
        last_pair = seen.agreement(CONSTANTS.fewest_windows)
        last_few = seen.agreement(CONSTANTS.windows_to_agree)
        wanted = plan.windows_wanted(waves, done, use, self.windows, last_pair, last_few)
        half_width = seen.relative_half_width(out / waves, self.confidence)
        needed = plan.windows_for(error, half_width, seen.alike, done)
        windows = plan.windows_to_come(done, wanted, needed, waves_left)
        self._last_gap = windows == 0
        return plan.waves_of_gap(waves_left, windows)

    def _allowance(self, waves: float) -> float:
        """`bias` relative to the launch, if so many waves are left out."""
        return allowance(self.bias, waves, self._wave, self._launch.cta_count)

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        return project(self._seen, launch, now, self.confidence, self.bias)


def _refusal(launch: LaunchView) -> str:
    """Why nothing of the launch can be left out; empty if it can."""
    if launch.order_matters:
        return "its CTAs influence each other, or may wait for each other: none can be left out"
    if launch.cluster_size > 1:
        return "its CTAs run in clusters, which are simulated together"
    return too_few(launch, CONSTANTS.fewest_waves)
