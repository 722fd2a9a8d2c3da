"""Systematic sampling along the grid: detailed windows, and CTAs executed without timing between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from simt.control.controller import GO_ON, Controller, Decision, Interval, LaunchView, Skip
from simt.control.projection import Projection, exact_from, is_peak
from simt.control.waves import too_few
from simt.parameter_checks import integer, real

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

_NEVER = 1 << 40  # core cycles, beyond any launch
_OF_A_WINDOW = 32  # waves for each window, if these are more than planned
_SHORT = 16  # waves of a launch that needs no second window if the first is as the cold one
_ALIKE = 0.005  # difference of two windows that makes more of them needless
_FEWEST = 5  # waves of a launch of which something is left out: two, a window, and the end
_STEPS = 5  # in which the CTAs between two windows are left out, after a first wave
_WARM_UP = 0.5  # waves before a window, after something has been left out
# Difference to the window that follows it at once that makes the first one after a gap part of the warm-up.
_UNSETTLED = 0.1
# Difference of the first window to the cold one and to later ones, on the same side, if waves swing.
_SWING = 0.03
# A cold beginning that decays at least that fast from wave to wave is over before the next window.
_DECAY = 0.8
# Spread of windows in most launches; how many degrees of freedom that is worth.
_USUAL, _PRIOR = 0.01, 4
_OF_CTAS = 0.1  # spread of the times of CTAs, from one launch with eight in a wave
_CHANGE = 0.05  # of DRAM's utilisation that makes another phase
_OF_CHANGE = 0.5  # of the difference between two windows that is uncertain between them
# Counters that depend on the program alone.
_OF_PROGRAM = (
    *("shared_loads", "shared_stores", "shared_wavefronts", "shared_bank_conflicts"),
    *("shared_store_bank_conflicts", "global_load_requests", "global_store_requests", "global_load_sectors"),
    *("global_store_sectors", "local_requests", "atomic_requests"),
)
# Counters of time, and of traffic to DRAM.
_OF_TIME = ("cycles", "sm_active_cycles", "active_warp_cycles")
_OF_DRAM = ("dram_reads", "dram_writes", "dram_bus_cycles")
# Uses of DRAM: from the first on, the time of a wave varies much, as the efficiency of DRAM does; between the
# next two, its traffic begins to set the pace, and sets it alone; from the last on, nothing else matters.
_MUCH, _BOUND, _BOUND_ALONE, _ALL = 0.45, 0.8, 0.9, 0.94
_OF_MUCH = 5  # windows, if DRAM is used that much
_RIDGE = 0.003  # sum of squares of relative differences in traffic that says nothing
_ESTIMATED = 0.9  # the most that this is relied on
_FAR = 0.21  # by how much less or more windows exchange than what is left out, at most
_SECTOR_BYTES, _LINE_BYTES = 32, 128


@dataclass(frozen=True)
class _Left:
    """CTAs left out together.

    warp_instructions, thread_instructions: what they execute; 0: not counted. dram_sectors: what they
    exchange with DRAM, as far as the L2's tags show.
    """

    ctas: int
    warp_instructions: int
    thread_instructions: int
    dram_sectors: int


@dataclass(frozen=True, eq=False)
class _Window:
    """From the dispatch of one CTA to that of the CTA a wave later."""

    begin: Interval
    end: Interval

    def __getitem__(self, name: str) -> int:
        """The increase of a counter, or of the `cycles`."""
        if name == "cycles":
            return self.end.end - self.begin.end
        return self.end.counters[name] - self.begin.counters[name]


@dataclass(frozen=True)
class _Rates:
    """Of a counter against instructions, by window.

    sectors: exchanged with DRAM, per instruction. elasticity: of the rate with respect to them.
    """

    of_windows: Floats
    sectors: Floats
    elasticity: Floats

    def at(self, windows: Ints, sectors: Floats) -> Floats:
        """The rates that these windows would have had, if they had exchanged that much. A difference beyond
        what windows vary by says rather that the tags do not see all that is exchanged."""
        rates: Floats = self.of_windows[windows]
        if not self.elasticity.any():
            return rates
        own = self.sectors[windows]
        change = np.divide(sectors, own, out=np.ones(len(sectors)), where=own > 0) - 1
        change[np.abs(own - sectors) > _FAR * sectors] = 0
        scaled: Floats = rates * (1 + self.elasticity[windows] * change)
        return scaled

    @property
    def differences(self) -> Floats:
        """Between successive windows, as if both had exchanged what they do in the mean."""
        if not self.elasticity.any():
            return np.diff(self.of_windows)
        later = np.arange(1, len(self.of_windows))
        sectors = (self.sectors[later] + self.sectors[later - 1]) / 2
        return self.at(later, sectors) - self.at(later - 1, sectors)

    def squares(self, first: int, end: int) -> float:
        """Sum of the squares of the deviations of these windows from their mean, likewise."""
        sectors = np.full(end - first, self.sectors[first:end].mean())
        rates = self.at(np.arange(first, end), sectors)
        return float(((rates - rates.mean()) ** 2).sum())


@dataclass(frozen=True)
class _Course:
    """What was left out between two windows, or after the last one, by _Left.

    part: of it that is as the later window. at_before, at_after: sectors per instruction that each part
    exchanges with DRAM. doubt: how uncertain `part` is, relative to a part that nothing is known of.
    follows: whether something says how it goes over from the one window into the other.
    """

    part: Floats
    at_before: Floats
    at_after: Floats
    doubt: float
    follows: bool


@dataclass(frozen=True)
class _Share:
    """What was left out, by the windows that it is as.

    windows, work, sectors: of each share, its window, its instructions, and what it exchanges with DRAM for
    each of them.
    """

    windows: Ints
    work: Floats
    sectors: Floats

    def total(self, rates: _Rates) -> float:
        return float(rates.at(self.windows, self.sectors) @ self.work)

    def scaled(self, rates: _Rates) -> float:
        """How much of the total comes from windows that exchange more or less with DRAM than this, unless
        that is known to be all that matters."""
        own = rates.of_windows[self.windows]
        change = np.where(rates.elasticity[self.windows] < 1, rates.at(self.windows, self.sectors) - own, 0)
        return abs(float(change @ self.work))

    @property
    def spread(self) -> float:
        """Standard deviation of the mean rate, if that of each window is 1."""
        return float(np.linalg.norm(np.bincount(self.windows, self.work)) / self.work.sum())


@cache
def _student(confidence: float, freedom: int) -> float:
    """Half width of an interval, in standard deviations."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + confidence / 2))


def _between_ends(course: Floats, first: float, last: float) -> Floats:
    """How far it has gone from its first value to its last."""
    return np.clip((course - first) / (last - first), 0.0, 1.0)


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
        self._wave = max(1, launch.ctas_per_sm * launch.sm_count)
        self._why = self._refusal(launch)
        self.awaited_cta = None if self._why else self._wave
        self._windows: list[_Window] = []  # those that are over; the first is cold
        self._began: Interval | None = None  # the window under way
        self._elasticity = 0.0  # of the time of a window, as the windows show it
        self._gaps: list[list[_Left]] = []  # what was left out after each window but the cold one
        self._waits_for: Interval | None = None  # a skip decided then takes effect
        self._to_leave_out = 0  # waves, before the next window
        self._step = 1  # waves left out together
        self._last_gap = False  # whether the planned windows are over
        return GO_ON

    def _refusal(self, launch: LaunchView) -> str:
        if launch.order_matters:
            return "its CTAs influence each other, or may wait for each other: none can be left out"
        if launch.cluster_size > 1:
            return "its CTAs run in clusters, which are simulated together"
        return too_few(launch, _FEWEST)

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
        """Called where a window begins or ends, and where CTAs have been left out."""
        left = self._left(interval)
        if self._waits_for is not None:
            self._has_left_out(interval)
            self._waits_for = None
            self._began = None
            self.awaited_cta = self._launch.cta_count - left + round(_WARM_UP * self._wave)
            if self._last_gap and left >= self._wave and self._changed():
                self._to_leave_out = 0
        else:
            if self._began is not None:
                self._windows.append(_Window(self._began, interval))
                if len(self._windows) > 1:
                    self._gaps.append([])
                    self._elasticity = self._estimated_elasticity()
                    self._to_leave_out = self._planned(left)
                    self._step = max(1, self._to_leave_out // _STEPS)
            self._began = interval
            assert self.awaited_cta is not None
            self.awaited_cta += self._wave
        if left == 0 or (left < self._wave and not any(self._gaps)):
            self.awaited_cta = None  # nothing more can be left out, and nothing is to be estimated
            return GO_ON
        waves = min(self._to_leave_out, left // self._wave)
        if waves <= 0:
            return GO_ON
        step = min(waves, self._step) if self._gaps[-1] else 1
        self._to_leave_out = waves - step
        self._waits_for = interval
        return Skip(step * self._wave, recent=self._turnover())

    def _left(self, interval: Interval) -> int:
        """CTAs not yet dispatched, nor left out."""
        return self._launch.cta_count - interval.counters["ctas"] - interval.skipped_ctas

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
        self._gaps[-1].append(_Left(ctas, warp, thread, sectors))

    def _planned(self, left: int) -> int:
        """Waves to leave out before the next window."""
        done, rest = len(self._windows) - 1, left / self._wave
        waves = self._launch.cta_count / self._wave
        out = waves - self._windows[-1].end.counters["ctas"] / self._wave
        room = self.error - self._allowance(out)
        if room <= 0:
            return 0
        used = self._last_use
        usual = max(self.windows, int(waves / _OF_A_WINDOW))
        if waves < _SHORT:
            usual = 1 if done == 1 and self._agree(2 * _USUAL) else 2
        elif done > 1 and used <= _MUCH:
            usual = 2 if self._agree(_ALIKE) else usual
        elif done > 1 and used <= _ALL:
            if self._gaps[-2]:
                return 0  # the next window tells how much they vary
            usual = done if self._agree(2 * _USUAL, 3) else max(usual, _OF_MUCH)
        elif done > 1:
            usual = 2
        alike = self._alike
        needed = math.ceil(alike * (self._relative_noise(out / waves) / room) ** 2) - alike + done
        more = max(0, max(needed if done > 1 else 0, usual) - done)
        cost = 1 + _WARM_UP
        if more * cost > rest - 1 and needed <= done:
            more = 0  # another window leaves nothing out
        self._last_gap = more == 0
        # Stretches before the windows to come are twice as long as the one after them, of which less is seen.
        return max(0, math.ceil((int(rest) - more * cost) / (more + 0.5)))

    @property
    def _alike(self) -> int:
        """Number of windows that count, without the first if the launch goes over from it into others."""
        done = len(self._counted)
        return done - 1 if done > 1 and self._course(0).follows else done

    @property
    def _last_use(self) -> float:
        """Of DRAM's bandwidth, in the last window."""
        return self._utilisation(self._dram_sectors(self._windows[-1]))

    def _agree(self, within: float, last: int = 2) -> bool:
        """Whether the rates of the last windows are the same, scaled to the same traffic."""
        windows = self._windows[-last:]
        rates = self._rates("cycles", "warp_instructions", windows)
        even = rates.at(np.arange(len(windows)), np.full(len(windows), rates.sectors.mean()))
        return bool(np.ptp(even) <= within * rates.of_windows[0])

    def _changed(self) -> bool:
        """Whether what was left out last executes more or less than what was left out before the last window,
        or exchanges other amounts with DRAM than what was seen before it: write-backs begin when the L2 is
        full of modified lines, and data may be used again or not."""
        last = self._gaps[-1][-1]
        return self._other_work(last) > _CHANGE or self._utilisation(self._not_seen(last)) > _CHANGE

    def _other_work(self, left: _Left) -> float:
        """How much more or less CTAs left out after the last window execute than those left out before it."""
        earlier = [x for gap in self._gaps[:-1] for x in gap][-1:]
        each, *seen = (getattr(x, self._measure) / x.ctas for x in (left, *earlier))
        return max((abs(x / each - 1) for x in seen), default=0.0) if each else 0.0

    def _differ(self, one: _Left, other: _Left) -> bool:
        """Whether the CTAs of the one execute more or less than those of the other."""
        each, seen = (getattr(x, self._measure) / x.ctas for x in (one, other))
        return bool(abs(each - seen) > _CHANGE * seen)

    def _not_seen(self, left: _Left) -> float:
        """Of what a CTA left out after the last window exchanges with DRAM: what neither that window nor the
        CTAs left out before it did, unless the window tells how long it takes."""
        seen = [self._dram_sectors(self._windows[-1])]
        earlier = [x for gap in self._gaps[:-1] for x in gap][-1:]
        seen += [x.dram_sectors / x.ctas for x in earlier]
        other = min(abs(left.dram_sectors / left.ctas - x) for x in seen)
        rates = self._rates("cycles", "warp_instructions", self._windows[-1:])
        return other * (1 - float(rates.elasticity[0]))

    def _dram_sectors(self, window: _Window) -> float:
        """What a CTA of this window exchanged with DRAM."""
        return (window["dram_reads"] + window["dram_writes"]) / self._wave

    def _turnover(self) -> float:
        """Share of the L2 that a wave replaces."""
        sectors = self._dram_sectors(self._windows[-1]) * self._wave
        lines = sectors * _SECTOR_BYTES / _LINE_BYTES
        return min(1.0, lines / self._launch.l2_lines) if self._launch.l2_lines else 0.0

    def _utilisation(self, sectors: float) -> float:
        """Of DRAM, if a CTA exchanges these sectors more or less than in the latest window."""
        cycles = self._windows[-1]["cycles"]
        moved = abs(sectors) * _SECTOR_BYTES * self._wave
        peak = self._launch.dram_bytes_per_cycle
        return moved / (peak * cycles) if peak and cycles else 0.0

    # --- estimates ---------------------------------------------------------------------------------------

    @property
    def _sampled(self) -> list[_Window]:
        """The windows from which rates come: all but the cold one. Where CTAs that began together also end
        together, the first two waves may swing about what follows: then they are one window."""
        cold, first, *later = self._windows
        rates = self._rates("cycles", self._measure, self._windows).of_windows
        if later:
            usual = float(rates[2:].mean())
            swings = (rates[0] - rates[1], usual - rates[1])
            if min(swings) > _SWING * usual or max(swings) < -_SWING * usual:
                first = _Window(cold.begin, first.end)
        return [first, *later]

    def _of(self, name: str, windows: Sequence[_Window]) -> Floats:
        return np.array([window[name] for window in windows], np.float64)

    def _rates(self, name: str, measure: str, windows: Sequence[_Window]) -> _Rates:
        """Of a counter against instructions.

        What a window exchanges with DRAM changes its time as far as DRAM sets the pace: by its use, or as the
        windows themselves show.
        """
        work = self._of(measure, windows)
        sectors = self._of("dram_reads", windows) + self._of("dram_writes", windows)
        used = self._use(sectors, self._of("cycles", windows))
        elasticity = np.zeros(len(windows))
        if name in _OF_TIME:
            least = np.where(used > _BOUND * self._last_use, self._elasticity, 0.0)
            elasticity = np.clip((used - _BOUND) / (_BOUND_ALONE - _BOUND), least, 1.0)
        elif name in _OF_DRAM:
            elasticity = np.ones(len(windows))
        return _Rates(self._of(name, windows) / work, sectors / work, elasticity)

    def _estimated_elasticity(self) -> float:
        """Of the time of a window with respect to what it exchanges with DRAM: the regression between
        successive windows, if much of DRAM is used. Few small differences say little."""
        self._elasticity = 0.0
        rates = self._rates("cycles", self._measure, self._sampled)
        steady = self._steady(np.arange(len(self._gaps)))
        if steady.sum() < 2 or self._last_use < _MUCH:
            return 0.0
        time, sectors = (np.diff(x)[steady] / x[-1] for x in (rates.of_windows, rates.sectors))
        return float(np.clip(time @ sectors / (sectors @ sectors + _RIDGE), 0.0, _ESTIMATED))

    def _use(self, sectors: Floats, cycles: Floats) -> Floats:
        """Of DRAM's bandwidth."""
        peak = self._launch.dram_bytes_per_cycle
        return sectors * _SECTOR_BYTES / (peak * cycles) if peak else np.zeros(len(sectors))

    def _steady(self, windows: Ints) -> npt.NDArray[np.bool_]:
        """Of each pair of successive ones of these windows, whether the launch does not go over from the one
        into the other."""
        follows = np.array([self._course(i).follows for i in range(len(self._gaps) - 1)], np.bool_)
        return np.array([not follows[a:b].any() for a, b in pairwise(windows)], np.bool_)

    def _noise(self, every: _Rates, counted: Ints, steady: npt.NDArray[np.bool_]) -> float:
        """Half width of the interval of one of these rates, in the windows that count. steady: of each
        pair of them that follow each other, whether the launch does not go over from the one into the other.

        Of windows that follow each other without the launch going over from one into the next, from the
        differences between successive ones (Wolter, "Introduction to Variance Estimation", 2007, section
        8.2), or from those to their mean if these are larger: CTAs drift apart and together again over many
        waves.
        Few windows say little of the spread, which is therefore shrunk towards that of most launches.
        """
        rates = _Rates(every.of_windows[counted], every.sectors[counted], every.elasticity[counted])
        own = 2 * max(0, int(steady.sum()) - (self._elasticity > 0))
        successive = float((rates.differences[steady] ** 2 / 2).sum())
        ends = [0, *(np.flatnonzero(~steady) + 1).tolist(), len(rates.of_windows)]
        to_mean = sum(rates.squares(a, b) for a, b in pairwise(ends))
        usual = max(_USUAL, _OF_CTAS / math.sqrt(self._wave)) * float(rates.of_windows.mean())
        variance = (2 * max(successive, to_mean) + _PRIOR * usual**2) / (own + _PRIOR)
        return _student(self.confidence, own + _PRIOR) * math.sqrt(variance)

    def _course(self, gap: int) -> _Course:
        """How what was left out after this window goes over into the next one.

        What it exchanges with DRAM tells where write-backs begin, because the L2 is full of modified lines,
        or where data is used again; the instructions of its CTAs, where their work changes. After the cold
        beginning, the difference to the later windows decays geometrically, as it does within the beginning.
        """
        left = self._gaps[gap]
        work = np.array([getattr(x, self._measure) for x in left], np.float64)
        ctas = np.array([x.ctas for x in left], np.float64)
        sectors = np.array([x.dram_sectors for x in left], np.float64) / np.maximum(1, work)
        if gap + 1 == len(self._gaps) or not left:
            return _Course(np.zeros(len(left)), sectors, sectors, 1.0, False)
        rates = self._rates("cycles", self._measure, self._sampled[gap : gap + 2])
        by_traffic = self._by_traffic(sectors, rates, float(work.sum() / ctas.sum()))
        if by_traffic and (rates.elasticity > self._elasticity).any():
            return by_traffic
        # A change may come within a window, or go on in it.
        first = self._gaps[gap - 1][-1] if gap and self._gaps[gap - 1] else left[0]
        last = self._gaps[gap + 1][0] if self._gaps[gap + 1] else left[-1]
        if self._differ(last, first):
            ends = (getattr(x, self._measure) / x.ctas for x in (first, last))
            return _Course(_between_ends(work / ctas, *ends), sectors, sectors, 1.0, True)
        cold = self._cold(float(ctas.sum()) / self._wave) if gap == 0 else None
        if cold is not None:
            return _Course(np.full(len(left), 1 - cold), sectors, sectors, min(1.0, 2 * cold), True)
        return by_traffic or _Course(np.full(len(left), 0.5), sectors, sectors, 1.0, False)

    def _by_traffic(self, sectors: Floats, rates: _Rates, each: float) -> _Course | None:
        """The course of a gap between windows with these rates, if its traffic to DRAM changes. sectors: by
        _Left, per instruction; each: mean instructions of a CTA."""
        ends = [float(sectors[0]), float(sectors[-1])]
        for i, seen in enumerate(rates.sectors.tolist()):
            if self._utilisation((seen - ends[i]) * each) * (1 - rates.elasticity[i]) > 2 * _CHANGE:
                ends[i] = seen
        if self._utilisation((ends[1] - ends[0]) * each) <= _CHANGE:
            return None
        part = _between_ends(sectors, *ends)
        inside = (part > 0) & (part < 1)
        return _Course(
            part, np.where(inside, ends[0], sectors), np.where(inside, ends[1], sectors), 1.0, True
        )

    def _cold(self, waves: float) -> float | None:
        """Part of these waves, which follow the first window, that is as it is; None if the launch's
        beginning does not decay, or already has."""
        rates = self._rates("cycles", self._measure, self._windows[:3])
        cold, first, later = rates.at(np.arange(3), np.full(3, rates.sectors[2])).tolist()
        if abs(first - later) <= _USUAL * later or abs(cold - later) <= _USUAL * later:
            return None
        keeps = (first - later) / (cold - later)  # from wave to wave
        if not 0 <= keeps <= _DECAY:
            return None
        return float(keeps * (1 - keeps**waves) / (1 - keeps) / waves)

    @property
    def _measure(self) -> str:
        # Threads of the input are those of the engine, also where its warps are not.
        by_warps = all(left.warp_instructions for gap in self._gaps for left in gap)
        return "warp_instructions" if by_warps else "thread_instructions"

    def _relative_noise(self, share: float) -> float:
        """Relative half width of the interval of the cycles if this share of the launch is left out, without
        the allowance."""
        rates = self._rates("cycles", "warp_instructions", self._sampled)
        half = self._noise(rates, self._counted, self._steady(self._counted)) / math.sqrt(self._alike)
        return share * half / float(rates.of_windows.mean())

    def _allowance(self, waves: float) -> float:
        """`bias` relative to the launch, if so many waves are left out: their errors are independent."""
        return self.bias * math.sqrt(waves) * self._wave / self._launch.cta_count

    @property
    def _samples(self) -> list[list[int]]:
        """The windows but the cold one; those that follow each other without a gap together."""
        samples: list[list[int]] = [[0]]
        for window, gap in enumerate(self._gaps[:-1], 1):
            if gap:
                samples.append([])
            samples[-1].append(window)
        return samples

    def _drift(self, rates: _Rates) -> float:
        """How much the rate changes in the windows that follow a gap, from the first to the last of them, in
        the mean: a first window alone may differ as much from what is left out."""
        drifts = []
        for sample in self._samples[1:]:
            if len(sample) > 1:
                ends = np.array([sample[0], sample[-1]])
                first, last = rates.at(ends, np.full(2, rates.sectors[ends].mean()))
                drifts.append(last - first)
        return abs(float(np.mean(drifts))) if drifts else 0.0

    @property
    def _counted(self) -> Ints:
        """The windows but the cold one that are no part of the warm-up: the first of those that follow each
        other after a gap is, if the next one shows that it still was disturbed."""
        rates = self._rates("cycles", self._measure, self._sampled)
        disturbed = {
            sample[0]
            for sample in self._samples[1:]
            if len(sample) > 1
            and abs(rates.differences[sample[0]]) > _UNSETTLED * rates.of_windows[sample[1]]
        }
        return np.array([x for x in range(len(rates.of_windows)) if x not in disturbed], np.intp)

    def _shares(self) -> _Share:
        counted = set(self._counted.tolist())
        sample_of = {w: [x for x in sample if x in counted] for sample in self._samples for w in sample}
        windows: list[Ints] = []
        work: list[Floats] = []
        sectors: list[Floats] = []
        for i, gap in enumerate(self._gaps):
            course = self._course(i)
            executed = np.array([getattr(x, self._measure) for x in gap], np.float64)
            after = sample_of[min(i + 1, len(self._gaps) - 1)]
            for sample, part, at in (
                (sample_of[i], 1 - course.part, course.at_before),
                (after, course.part, course.at_after),
            ):
                for window in sample:
                    windows.append(np.full(len(gap), window, np.intp))
                    work.append(executed * part / len(sample))
                    sectors.append(at)
        return _Share(np.concatenate(windows), np.concatenate(work), np.concatenate(sectors))

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        measure = self._measure
        windows = self._sampled
        seen_work = float(self._of(measure, windows).sum())
        shares = self._shares()
        every, spread = float(shares.work.sum()), shares.spread
        courses = [self._course(i) for i in range(len(self._gaps) - 1)]
        doubts = np.array([x.doubt for x in courses])
        doubts *= [sum(getattr(x, measure) for x in gap) for gap in self._gaps[:-1]]
        counted = self._counted
        steady = self._steady(counted)
        works = [(self._other_work(x), getattr(x, measure)) for x in self._gaps[-1]]
        other_work = sum(x * work for x, work in works if x > _CHANGE)
        others = [(self._not_seen(x), x.ctas) for x in self._gaps[-1]]
        unseen = sum(x * ctas for x, ctas in others if self._utilisation(x) > _CHANGE)
        unseen *= _SECTOR_BYTES / max(1.0, launch.dram_bytes_per_cycle)

        def total(name: str, done: float) -> tuple[float, float]:
            """The launch's total and its relative half width."""
            rates = self._rates(name, measure, windows)
            added = shares.total(rates)
            whole = done + added
            half = every * self._noise(rates, counted, steady) * spread + allowance * whole
            doubt = float(np.abs(rates.differences) @ doubts) + shares.scaled(rates)
            half += _OF_CHANGE * (doubt + every * self._drift(rates))
            if name != "cycles":  # events come one by one, and perhaps none came in a window
                seen = float(self._of(name, windows).sum())
                half += every / seen_work * _student(self.confidence, _PRIOR) * math.sqrt(max(seen, 1.0))
            half += _OF_CHANGE * other_work * float(rates.of_windows[-1])
            half += unseen * added / max(1.0, cycles_added)
            return whole, half / whole if whole else 0.0

        cycles_added = shares.total(self._rates("cycles", measure, windows))
        allowance = self._allowance((launch.cta_count - now.counters["ctas"]) / self._wave)
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
            elif is_peak(name) or name not in windows[0].begin.counters:
                totals[name], unprojected[name] = math.nan, "a peak: what is left out may exceed it"
            elif name in _OF_PROGRAM:
                # CTAs are simulated to their end, so that those simulated have all of it.
                grown = 1 + every / now.counters[measure]
                totals[name], projected[name] = done * grown, "simulated part, as its instructions"
                halves[name] = (1 - 1 / grown) * _student(self.confidence, _PRIOR) * _USUAL
            elif not done:
                totals[name], halves[name] = 0.0, 0.0
                projected[name] = "none in the simulated part"
            else:
                totals[name], halves[name] = total(name, done)
                projected[name] = "simulated part + rates of the windows next to what is left out"
        left_out = launch.cta_count - now.counters["ctas"]
        reason = (
            f"{len(windows)} windows of a wave; {left_out:,} of {launch.cta_count:,} CTAs left out; "
            f"cycles ± {half:.2%} at {self.confidence:.0%} confidence"
        )
        return Projection(round(cycles), totals, projected, unprojected, {}, halves, reason)
