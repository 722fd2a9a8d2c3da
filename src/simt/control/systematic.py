"""Systematic sampling along the grid: detailed windows, and CTAs executed without timing between them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simt.control.controller import GO_ON, Controller, Decision, Interval, LaunchView, Skip
from simt.control.projection import Projection, exact_from, is_peak
from simt.parameter_checks import integer, real

Floats = npt.NDArray[np.float64]

_NEVER = 1 << 40  # core cycles, beyond any launch
_SHORTEST, _LONGEST = 50, 500  # core cycles between observations
_OBSERVATIONS = 32  # in the time of the first wave, about
_OF_A_WINDOW = 16  # waves for each window, if these are more than planned
_FEWEST = 2  # windows: of launches that are shorter than that, or if they agree
_STEPS = 4  # in which the CTAs between two windows are left out
# Spread of windows in most launches, how much more it is at full use of DRAM, and how many degrees of freedom
# that is worth.
_USUAL, _USUAL_OF_DRAM, _PRIOR = 0.01, 0.01, 4
_CHANGE = 0.05  # of DRAM's utilisation that makes another phase
_OF_CHANGE = 0.35  # of the difference between two windows that is uncertain between them
# Counters that depend on the program alone.
_OF_PROGRAM = (
    *("shared_loads", "shared_stores", "shared_wavefronts", "shared_bank_conflicts"),
    *("shared_store_bank_conflicts", "global_load_requests", "global_store_requests", "global_load_sectors"),
    *("global_store_sectors", "local_requests", "atomic_requests"),
)
_SECTOR_BYTES, _LINE_BYTES = 32, 128


@dataclass(frozen=True)
class _Left:
    """CTAs left out.

    at: CTAs dispatched before. warp_instructions, thread_instructions: what they execute; 0: not counted.
    dram_sectors: what a CTA of them exchanges with DRAM, as far as the L2's tags show.
    """

    at: int
    ctas: int
    warp_instructions: int
    thread_instructions: int
    dram_sectors: float


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
    windows: number of windows planned; long launches have one for every 16 waves. Two are enough if they
        agree, or in launches shorter than that.
    bias: allowance for what windows do not show, such as that the CTAs which continue meet an L2 that is not
        quite theirs: in waves, times the root of the waves left out.
    """

    method = "systematic"

    def __init__(
        self, error: float = 0.03, confidence: float = 0.95, windows: int = 3, bias: float = 0.08
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
        self._wave = max(1, launch.ctas_per_sm * launch.sm_count)
        self._why = self._refusal(launch)
        self.interval = _NEVER if self._why else _SHORTEST
        self._seen: list[Interval] = []
        self._window = 2 * self._wave  # CTAs dispatched where the window under way began
        self._windows: list[int] = [self._wave]  # where those that are over began; the first is cold
        self._left_out: list[_Left] = []
        self._waits_for: Interval | None = None  # a skip decided then takes effect
        self._to_leave_out = 0  # waves, before the next window
        self._last_gap = False  # whether the planned windows are over
        self._dispatched: list[int] = []  # CTAs, at each observation
        self._spread_of = 0  # windows of which the next two are known
        self._are_steady = np.zeros(0, np.bool_)
        self._usual = _USUAL
        return GO_ON

    def _refusal(self, launch: LaunchView) -> str:
        waves = launch.cta_count / self._wave
        if launch.order_matters:
            return "its CTAs influence each other, or may wait for each other: none can be left out"
        if launch.cluster_size > 1:
            return "its CTAs run in clusters, which are simulated together"
        if waves < 4:
            return f"it has {waves:.2f} waves of CTAs: fewer than 4 leave nothing out"
        return ""

    @property
    def why_full(self) -> str:
        if self._why:
            return self._why
        if len(self._windows) < 2:
            return "it ended before a window did"
        return (
            f"its windows differ too much to leave out a wave at the error asked for, {self.error:.1%}: "
            f"± {self._relative_noise(1.0) + self._allowance(1.0):.1%}"
        )

    def observe(self, interval: Interval) -> Decision:
        counters = interval.counters
        self._seen.append(interval)
        self._dispatched.append(counters["ctas"])
        if counters["ctas_finished"] == 0:
            self.interval = min(_LONGEST, max(_SHORTEST, interval.end // _OBSERVATIONS))
            return GO_ON
        left = self._launch.cta_count - counters["ctas"] - interval.skipped_ctas
        if self._waits_for is not None:
            if interval.skipped_ctas == self._waits_for.skipped_ctas:
                return GO_ON
            self._has_left_out(interval)
            self._window = counters["ctas"]
            self._waits_for = None
            if self._last_gap and left >= self._wave and self._changed():
                self._to_leave_out = 0
        elif counters["ctas"] >= self._window + self._wave:
            self._windows.append(self._window)
            self._window = counters["ctas"]
            self._to_leave_out = self._planned(left)
        if left == 0:
            self.interval = _NEVER
            return GO_ON
        waves = min(self._to_leave_out, left // self._wave)
        if waves <= 0:
            return GO_ON
        step = max(1, waves // _STEPS)
        self._to_leave_out = waves - step
        self._waits_for = interval
        return Skip(step * self._wave, recent=self._turnover())

    def _has_left_out(self, interval: Interval) -> None:
        before = self._waits_for
        assert before is not None
        ctas, warp, thread, sectors = (
            getattr(interval, name) - getattr(before, name)
            for name in (
                "skipped_ctas",
                "skipped_warp_instructions",
                "skipped_thread_instructions",
                "skipped_dram_sectors",
            )
        )
        self._left_out.append(_Left(before.counters["ctas"], ctas, warp, thread, sectors / ctas))

    def _planned(self, left: int) -> int:
        """Waves to leave out before the next window."""
        done, rest = len(self._windows) - 1, left // self._wave
        waves = self._launch.cta_count / self._wave
        room = self.error - self._allowance(waves - done - 2)
        if room <= 0:
            return 0
        needed = math.ceil(done * (self._relative_noise(1 - (done + 2) / waves) / room) ** 2)
        usual = max(self.windows, int(waves / _OF_A_WINDOW)) if waves >= _OF_A_WINDOW else _FEWEST
        if done >= _FEWEST and self._agree():
            usual = done
        more = max(0, max(needed if done > 1 else 0, usual) - done)
        if more >= rest and needed <= done:
            more = 0  # another window leaves nothing out
        self._last_gap = more == 0
        # Stretches before the windows to come are twice as long as the one after them, of which less is seen.
        return max(0, math.ceil((rest - more) / (more + 0.5)))

    def _agree(self) -> bool:
        """Whether the rates of the last two windows are the same."""
        begins = np.array(self._windows[-2:], np.float64)
        rates = self._between("cycles", begins) / self._between("warp_instructions", begins)
        return bool(abs(rates[1] - rates[0]) <= _USUAL * rates[0])

    def _changed(self) -> bool:
        """Whether what was left out last exchanges other amounts with DRAM than what was seen before it:
        write-backs begin when the L2 is full of modified lines, and data may be used again or not."""
        last = self._left_out[-1]
        seen = [float(self._dram_sectors(np.array([self._windows[-1]], np.float64))[0])]
        if len(self._left_out) > 1:
            seen.append(self._left_out[-2].dram_sectors)
        return min(self._utilisation(last.dram_sectors - x) for x in seen) > _CHANGE

    def _dram_sectors(self, begins: Floats) -> Floats:
        """What a CTA of these windows exchanged with DRAM."""
        exchanged = self._between("dram_reads", begins) + self._between("dram_writes", begins)
        return exchanged / self._wave

    def _turnover(self) -> float:
        """Share of the L2 that a wave replaces."""
        sectors = float(self._dram_sectors(np.array([self._windows[-1]], np.float64))[0]) * self._wave
        lines = sectors * _SECTOR_BYTES / _LINE_BYTES
        return min(1.0, lines / self._launch.l2_lines) if self._launch.l2_lines else 0.0

    def _utilisation(self, sectors: float) -> float:
        """Of DRAM, if a CTA exchanges these sectors more or less than in the latest window."""
        cycles = float(self._between("cycles", np.array([self._windows[-1]], np.float64))[0])
        moved = abs(sectors) * _SECTOR_BYTES * self._wave
        peak = self._launch.dram_bytes_per_cycle
        return moved / (peak * cycles) if peak and cycles else 0.0

    # --- estimates ---------------------------------------------------------------------------------------

    def _at(self, name: str, dispatched: float) -> float:
        """A counter, or the `cycles`, when that many CTAs had been dispatched. Between observations,
        dispatches and events are spread evenly; of several that saw the same number of CTAs, the last is when
        the next one came."""

        def value(i: int) -> int:
            return self._seen[i].end if name == "cycles" else self._seen[i].counters[name]

        before = bisect_right(self._dispatched, dispatched) - 1
        if before < 0 or before + 1 == len(self._seen):
            return value(max(0, before))
        after = bisect_right(self._dispatched, self._dispatched[before + 1]) - 1
        first, last = self._dispatched[before], self._dispatched[after]
        part = (dispatched - first) / (last - first)
        return (1 - part) * value(before) + part * value(after)

    def _between(self, name: str, begins: Floats) -> Floats:
        """The increase in windows that begin there."""
        return np.array([self._at(name, x + self._wave) - self._at(name, x) for x in begins.tolist()])

    def _noise(self, name: str, measure: str) -> tuple[Floats, float, int]:
        """Rates in the windows, of a counter against instructions; the standard deviation of one, and its
        degrees of freedom: from differences between successive windows (Wolter, "Introduction to Variance
        Estimation", 2007, section 8.2). Pairs between which the use of DRAM changes do not count, nor does
        the cold window. Few pairs say little of the spread, which is therefore shrunk towards that of most
        launches."""
        begins = np.array(self._windows, np.float64)
        rates = self._between(name, begins) / self._between(measure, begins)
        if self._spread_of != len(begins):
            self._spread_of = len(begins)
            self._are_steady = self._steady(begins)
            self._are_steady[0] = False
            used = self._utilisation(float(self._dram_sectors(begins[-1:])[0]))
            self._usual = _USUAL + _USUAL_OF_DRAM * used
        squares = np.diff(rates)[self._are_steady] ** 2 / 2
        own = 2 * len(squares)
        usual = (self._usual * float(rates[1:].mean())) ** 2
        variance = (2 * float(squares.sum()) + _PRIOR * usual) / (own + _PRIOR)
        return rates, math.sqrt(variance), own + _PRIOR

    def _steady(self, begins: Floats) -> npt.NDArray[np.bool_]:
        """Of each pair of successive windows, whether the use of DRAM or the rate of instructions stays the
        same."""
        rates = self._between("cycles", begins) / self._between("warp_instructions", begins)
        same = np.abs(np.diff(rates)) <= _CHANGE * rates[1:]
        changes = np.diff(self._dram_sectors(begins))
        return np.array([self._utilisation(x) <= _CHANGE for x in changes], np.bool_) | same

    def _student(self, freedom: int) -> float:
        from scipy.special import stdtrit

        return float(stdtrit(freedom, 0.5 + self.confidence / 2))

    def _of_mean(self, noise: float, freedom: int) -> float:
        """Half width of the interval of the mean of all windows."""
        return self._student(freedom) * noise / math.sqrt(len(self._windows) - 1)

    def _relative_noise(self, share: float) -> float:
        """Relative half width of the interval of the cycles if this share of the launch is left out, without
        the allowance."""
        rates, noise, freedom = self._noise("cycles", "warp_instructions")
        return share * self._of_mean(noise, freedom) / float(rates[1:].mean())

    def _allowance(self, waves: float) -> float:
        """`bias` relative to the launch, if so many waves are left out: their errors are independent."""
        return self.bias * math.sqrt(waves) * self._wave / self._launch.cta_count

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        # Threads of the input are those of the engine, also where its warps are not.
        by_warps = all(left.warp_instructions for left in self._left_out)
        measure = "warp_instructions" if by_warps else "thread_instructions"
        begins = np.array(self._windows[1:], np.float64)
        work = self._between(measure, begins)
        sectors = self._dram_sectors(begins)
        # Of the work left out, by window: what its rate stands for; by pair of windows: what lies between.
        stands_for, between = np.zeros(len(begins)), np.zeros(len(begins))
        before_end: list[float] = []  # what was left out last before the last window exchanged
        unseen = 0.0  # core cycles, at most, of traffic to DRAM that no window has seen
        for left in self._left_out:
            executed = getattr(left, measure)
            after = int(np.searchsorted(begins, left.at))
            if after == len(begins):
                stands_for[-1] += executed
                more = min(abs(left.dram_sectors - x) for x in (sectors[-1], *before_end))
                if self._utilisation(more) > _CHANGE:
                    unseen += more * _SECTOR_BYTES * left.ctas / launch.dram_bytes_per_cycle
                continue
            before_end = [left.dram_sectors]
            change = sectors[after] - sectors[after - 1]
            part = 0.5
            if self._utilisation(change) > _CHANGE:
                part = min(1.0, max(0.0, (left.dram_sectors - sectors[after - 1]) / change))
            stands_for[after] += part * executed
            stands_for[after - 1] += (1 - part) * executed
            between[after] += executed
        every = float(stands_for.sum())

        def total(name: str, done: float) -> tuple[float, float]:
            """The launch's total and its relative half width."""
            rates, noise, freedom = self._noise(name, measure)
            added = float(rates[1:] @ stands_for)
            whole = done + added
            half = every * self._of_mean(noise, freedom) + allowance * whole
            half += _OF_CHANGE * float(np.abs(np.diff(rates[1:], prepend=0)) @ between)
            if name != "cycles":  # events come one by one, and perhaps none came in a window
                seen = float(self._between(name, begins).sum())
                half += every / work.sum() * self._student(freedom) * math.sqrt(max(seen, 1.0))
            half += unseen * added / max(1.0, float(cycle_rates @ stands_for))
            return whole, half / whole if whole else 0.0

        allowance = self._allowance((launch.cta_count - now.counters["ctas"]) / self._wave)
        cycle_rates = self._noise("cycles", measure)[0][1:]
        cycles, half = total("cycles", now.end)
        totals: dict[str, float] = {}
        halves = {"cycles": half}
        projected = {"cycles": f"simulated part + {cycles - now.end:,.0f} for the CTAs left out"}
        unprojected = {}
        known: Mapping[str, float] = {
            "ctas": launch.cta_count,
            "ctas_finished": launch.cta_count,
            "warps": launch.cta_count * launch.warps_per_cta,
        }
        for name, done in now.counters.items():
            if name in known:
                totals[name], projected[name] = known[name], exact_from(launch, name)
            elif is_peak(name) or name not in self._seen[-1].counters:
                totals[name], unprojected[name] = math.nan, "a peak: what is left out may exceed it"
            elif name in _OF_PROGRAM:
                # CTAs are simulated to their end, so that those simulated have all of it.
                grown = 1 + every / now.counters[measure]
                totals[name], projected[name] = done * grown, "simulated part, as its instructions"
                halves[name] = (1 - 1 / grown) * self._student(_PRIOR) * _USUAL
            else:
                totals[name], halves[name] = total(name, done)
                projected[name] = "simulated part + rates of the windows next to what is left out"
        left_out = launch.cta_count - now.counters["ctas"]
        reason = (
            f"{len(begins)} windows of a wave; {left_out:,} of {launch.cta_count:,} CTAs left out; "
            f"cycles ± {half:.2%} at {self.confidence:.0%} confidence"
        )
        return Projection(round(cycles), totals, projected, unprojected, {}, halves, reason)
