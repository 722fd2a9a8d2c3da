"""Photon: sampled simulation of launches by basic blocks, warps and whole kernels, without a profile.

Liu, Sun, Carlson: Photon, MICRO'23. docs/control/photon.md says how it works and where it deviates.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from simt.errors import ParameterError
from simt.parameter_checks import boolean, integer, one_of, real
from simt.result import LaunchResult
from simt.spec.models import SECTOR_BYTES

from .basic_block_vectors import distance as vector_distance
from .controller import GO_ON, Contention, Controller, Decision, Interval, LaunchView, Predict
from .cta_times import CtaTimes
from .interval_model import BlockInstruction, block_cycles, mean_by_opcode
from .photon_analysis import LaunchAnalysis, load_analyses, save_analyses
from .photon_counters import extrapolate, kinds_of_work
from .projection import Projection
from .stability import SpanStability, Stability, StabilityRule
from .throughput import Throughput

Small = Literal["wave", "sms"]
LEVELS = ("kernel", "block", "warp")
_WINDOWS = {"span": (32, 32), "paper": (2048, 1024), "artifact": (4096, 1024)}
_COVERAGE = {"span": 0.9, "paper": 0.95, "artifact": 0.95}
_WAVES_FOR_WARPS, _WAVES_FOR_BLOCKS = 3, 2
_RECENT = 8  # intervals of which the rate of cache misses is taken
_BUSY = 0.5  # share of the memory's bandwidth from which on it matters to times
_STARVED = 1.25  # scale of blocks' times from which on some warps run and others wait
_STRAGGLERS = 0.1  # share of a block's executions that says nothing of it
_FEW = 16  # executions below which a block's own mean says less than the interval model


@dataclass(frozen=True, eq=False)
class _Done:
    """A launch that was simulated, wholly or in part: what later ones are compared with."""

    analysis: LaunchAnalysis
    index: int
    warps: int
    cycles: int  # from the first dispatch to the end
    counters: Mapping[str, float]
    first: bool  # of its function

    @property
    def work(self) -> float:
        """Warp instructions as the sample has them, for ratios of launches."""
        return self.analysis.instructions_per_warp * self.warps


@dataclass(eq=False)
class _Current:
    """The launch under way."""

    view: LaunchView
    analysis: LaunchAnalysis
    warps: Stability | SpanStability
    ctas: CtaTimes
    like: _Done | None = None  # what predicts all of it
    blocks: dict[int, Stability | SpanStability] = field(default_factory=dict)
    settled_from: int = 0  # first CTA whose blocks are looked at
    scale: float = 1.0  # of the times of blocks
    recent: deque[Interval] = field(default_factory=lambda: deque(maxlen=_RECENT))
    throughput: Throughput = field(default_factory=Throughput)
    executed: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    level: str = ""  # that predicts at present
    ruled_out: str = ""  # why no level applies

    @property
    def warp_count(self) -> int:
        return self.view.cta_count * self.view.warps_per_cta

    @property
    def work(self) -> float:
        """Warp instructions as the sample has them."""
        return self.analysis.instructions_per_warp * self.warp_count


class Photon(Controller):
    """Predicts the rest of a launch once its basic blocks or its warps take stable times, and whole launches
    from similar earlier ones.

    levels: which of "kernel", "block" and "warp" are used: a sequence, or one text with "+" between them.
    preset: the stability test: "span" (ours), "paper" as published, or "artifact" as in the code published
        with it (see simt.control.stability).
    sample: share of the warps that are followed before a launch is simulated (at least 32, and one CTA).
    delta: how near to 1 the slope must be, and how near to each other the means of the two windows.
    block_window, warp_window: executions of a basic block, and warps, that the test looks at. With "paper"
        n, 2048 and 1024; with "artifact" the length of the long window, 4096 and 1024; with "span" the
        fewest, 32.
    coverage: share of the instructions in stable blocks from which on blocks predict: 0.95, with "span" 0.9.
    dominance: share of the warps that must be of one type for warps to predict.
    distance: L1 distance of GPU basic-block vectors, from 0 to 2, below which launches are alike.
    small: "wave": launches that do not fill the GPU once, "sms" (paper): those of fewer warps than SMs, are
        only alike if they have equally many warps. Below a wave, time goes with the work of one warp.
    work: by what share the instructions per warp of alike launches may differ; None (paper): any. With them
        grow working sets, and so cache misses.
    below_wave: with "span", share of the instructions of a launch that fits the GPU at once to be executed
        before anything predicts.
    residents: whether the rest of the CTAs that run when warps or blocks begin to predict is predicted, too,
        as in the artifact; else they are simulated to their end, as in the paper.
    analysis: file with the analysis of an earlier simulation of the same launches, on any GPU; nothing is
        followed ahead then.
    """

    name: ClassVar[str] = "photon"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "span": {"preset": "span"},
        "paper": {"preset": "paper", "small": "sms", "work": None},
        "artifact": {"preset": "artifact", "small": "sms", "work": None},
    }

    def __init__(
        self,
        levels: str | Iterable[str] = LEVELS,
        preset: str = "span",
        sample: float = 0.01,
        delta: float = 0.03,
        block_window: int | None = None,
        warp_window: int | None = None,
        coverage: float | None = None,
        dominance: float = 0.95,
        distance: float = 0.1,
        small: Small = "wave",
        work: float | None = 0.1,
        below_wave: float = 0.3,
        interval: int = 500,
        residents: bool = True,
        analysis: str | os.PathLike[str] | None = None,
    ) -> None:
        wanted = set(levels.split("+") if isinstance(levels, str) else levels)
        if not wanted or wanted - set(LEVELS):
            raise ParameterError(f"levels is {levels!r}, expected some of {', '.join(LEVELS)}")
        self.levels = tuple(level for level in LEVELS if level in wanted)
        self.preset = one_of("preset", preset, tuple(_WINDOWS))
        self.sample = real("sample", sample, 0, 1, open_low=True)
        self.delta = real("delta", delta, 0)
        of_blocks, of_warps = _WINDOWS[preset]
        self.block_window = integer("block_window", of_blocks if block_window is None else block_window, 4)
        self.warp_window = integer("warp_window", of_warps if warp_window is None else warp_window, 4)
        covered = _COVERAGE[preset] if coverage is None else coverage
        self.coverage = real("coverage", covered, 0, 1, open_low=True)
        self.dominance = real("dominance", dominance, 0, 1, open_low=True)
        self.distance = real("distance", distance, 0, 2)
        self.small = one_of("small", small, ("wave", "sms"))
        self.work = None if work is None else real("work", work, 0)
        self.below_wave = real("below_wave", below_wave, 0, 1)
        self.interval = integer("interval", interval, 1)
        self.residents = boolean("residents", residents)
        self.analysis = None if analysis is None else os.fspath(analysis)
        self._known = {} if analysis is None else load_analyses(analysis)
        self._analyses: list[LaunchAnalysis] = []
        self._done: list[_Done] = []
        self._functions: set[str] = set()
        self._current: _Current | None = None

    @property
    def why_full(self) -> str:
        now = self._current
        if now is None or now.level:
            return ""
        if now.ruled_out:
            return now.ruled_out
        reasons = []
        if self.blocks:
            reasons.append(f"stable basic blocks hold {self._covered(now):.0%} of the instructions")
        if self.warps:
            reasons.append(f"the time of its warps was not stable in {now.warps.seen:,}")
        elif "warp" in self.levels:
            reasons.append(f"{now.analysis.types.weights[0]:.0%} of the warps are of one type")
        if self.levels == ("kernel",):
            reasons.append("no earlier launch is like it")
        return "; ".join(reasons)

    @classmethod
    def variant(cls, text: str) -> dict[str, Any]:
        """A preset, or levels such as `photon:block+warp`."""
        return cls.presets.get(text) or {"levels": text}

    def _stability(self, window: int) -> Stability | SpanStability:
        if self.preset == "span":
            return SpanStability(self.delta, window)
        rule = StabilityRule.published if self.preset == "paper" else StabilityRule.artifact
        return Stability(rule(window, self.delta))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the analyses of the launches so far, for `analysis` of a later simulation."""
        save_analyses(path, self._analyses)

    # --- before a launch --------------------------------------------------------------------------------

    def begin(self, launch: LaunchView) -> Decision:
        analysis = self._analyse(launch)
        self._analyses.append(analysis)
        now = self._current = _Current(
            launch, analysis, self._stability(self.warp_window), CtaTimes(launch.warps_per_cta)
        )
        self.warps = self.blocks = False
        if not analysis.complete:
            now.ruled_out = "the sampled warps wait for others or go wrong without them"
            return GO_ON
        if "kernel" in self.levels and (like := self._alike(now)) is not None:
            now.like, now.level = like, "kernel"
            cycles = like.cycles * analysis.instructions_per_warp * now.warp_count / max(1.0, like.work)
            return Predict(
                launch_cycles=max(1.0, cycles),
                reason=f"kernel: its basic-block vector is within {self.distance:g} of that of launch "
                f"{like.index}, with {like.warps:,} warps against {now.warp_count:,}",
            )
        if launch.wave_size >= launch.cta_count and not self.residents:
            now.ruled_out = "all of its CTAs run at once"
            return GO_ON
        if "warp" in self.levels:
            self.warps = bool(analysis.types.weights[0] >= self.dominance)
        self.blocks = "block" in self.levels
        if self.preset == "span":
            waves = launch.cta_count / launch.wave_size
            # Warps of later waves take the time that matters; they are worth waiting for.
            if self.warps and waves > _WAVES_FOR_WARPS:
                self.blocks = False
            # The warps of the first wave go through the code in step, those of later ones do not.
            if waves > _WAVES_FOR_BLOCKS:
                now.settled_from = launch.wave_size
        return GO_ON

    def _analyse(self, launch: LaunchView) -> LaunchAnalysis:
        key = (launch.index, launch.name, launch.grid, launch.block)
        if key in self._known:
            return self._known[key]
        if launch.code is None:
            raise ParameterError(f"launch {launch.id} ({launch.name}): photon needs the launch's code")
        return LaunchAnalysis.of(key, launch.code.blocks, launch.code.preview(self.sample))

    def _alike(self, now: _Current) -> _Done | None:
        """The earlier launch with a similar vector whose number of warps is nearest."""
        view, each = now.view, now.analysis.instructions_per_warp
        waves = view.ctas_per_sm * view.sm_count * view.warps_per_cta
        small = waves if self.small == "wave" else view.sm_count
        found = [
            done
            for done in self._done
            if not (self.preset == "span" and done.first)
            and (done.warps == now.warp_count or min(done.warps, now.warp_count) >= small)
            and (self.work is None or abs(done.analysis.instructions_per_warp - each) <= self.work * each)
            and vector_distance(done.analysis.vector, now.analysis.vector) < self.distance
        ]
        # Of equally near ones the latest: its caches are as this one's.
        return min(found, key=lambda d: (abs(d.warps - now.warp_count), -d.index), default=None)

    # --- during a launch --------------------------------------------------------------------------------

    def observe(self, interval: Interval) -> Decision:
        now = self._current
        assert now is not None
        if self.blocks and len(interval.blocks):
            executed = np.bincount(interval.blocks["block"], minlength=len(now.analysis.length))
            now.executed = now.executed + executed if len(now.executed) else executed
        if self.preset == "span" and not now.level and self._fills_l2(now, interval):
            now.warps, now.ctas = self._stability(self.warp_window), CtaTimes(now.view.warps_per_cta)
            now.blocks, now.throughput = {}, Throughput()
            return GO_ON
        if self.warps and now.level != "warp":
            self._add_warps(now, interval)
        if self.blocks and not now.level and len(interval.blocks):
            self._add_blocks(now, interval)
        if self.preset == "span":
            now.throughput.add(interval, len(now.analysis.length))
            if not now.throughput.steady(self.delta, self._rounds(now, interval)) or (
                now.view.cta_count <= now.view.wave_size
                and interval.counters["warp_instructions"] < self.below_wave * now.work
            ):
                return GO_ON
            now.scale = now.throughput.block_scale(now.analysis.length, self._to_come(now))
        if self.warps and now.level != "warp" and now.warps.stable:
            now.level = "warp"
            each = now.warps.mean()
            if self.preset == "span":
                each = now.throughput.cta_cycles(now.analysis.instructions_per_warp * now.view.warps_per_cta)
            return Predict(
                warp_cycles=each,
                residents=self.residents,
                contention=self._contention(now),
                reason=f"warp: stable after {now.warps.seen:,} warps, {each:,.0f} cycles each",
            )
        if self.blocks and not now.level and len(interval.blocks) and math.isfinite(now.scale):
            covered = self._covered(now)
            if covered >= self.coverage:
                now.level = "block"
                return Predict(
                    block_cycles=self._block_cycles(now, interval),
                    residents=self.residents,
                    contention=self._contention(now),
                    reason=f"block: stable ones hold {covered:.1%} of the instructions",
                )
        return GO_ON

    @staticmethod
    def _rounds(now: _Current, interval: Interval) -> float:
        """Executions of the block with most instructions, per resident warp."""
        main = now.blocks.get(int(np.argmax(now.analysis.block_shares)))
        resident = interval.ctas_resident * now.view.warps_per_cta
        return main.seen / resident if main is not None and resident else math.inf

    @staticmethod
    def _to_come(now: _Current) -> npt.NDArray[np.bool_]:
        """Blocks of which there is more to come than a few stragglers."""
        total = now.analysis.types.weights @ now.analysis.types.counts.astype(np.float64) * now.warp_count
        executed = now.executed if len(now.executed) else np.zeros(len(total))
        return np.asarray(total - executed > _STRAGGLERS * total)

    def _contention(self, now: _Current) -> Contention | None:
        """With preset "span": a warp that waits for no other takes the time of the fastest of each block."""
        if self.preset != "span" or not now.blocks:
            return None
        shares, lengths = now.analysis.block_shares, now.analysis.length
        known = [(shares[b] / lengths[b], s) for b, s in now.blocks.items() if s.seen >= _FEW]
        alone = sum(share * s.fastest() for share, s in known if isinstance(s, SpanStability))
        together = now.scale * sum(share * s.mean() for share, s in known)
        one_wave = now.view.cta_count <= now.view.wave_size
        return now.throughput.contention(together / max(1e-9, alone), now.scale > _STARVED, one_wave)

    def _fills_l2(self, now: _Current, interval: Interval) -> bool:
        """Whether the launch is about to fill the L2 and has not done so yet, or stores into lines that the
        L2 takes from what it only read: until modified lines are evicted, stores cost no memory bandwidth,
        and with them the memory will be busy."""
        now.recent.append(interval)
        if _l2_misses(interval.counters) >= now.view.l2_lines:
            return False
        stored = sum(
            i.difference["l2.global_write.miss"] + i.difference["l2.global_write.sector_miss"]
            for i in now.recent
        )
        written = sum(i.difference["dram_writes"] for i in now.recent)
        moved = sum(i.difference["dram_reads"] for i in now.recent) + max(stored, written)
        cycles = interval.end - now.recent[0].begin
        if SECTOR_BYTES * moved < _BUSY * now.view.dram_bytes_per_cycle * cycles:
            return False
        left = max(0.0, now.work - interval.counters["warp_instructions"])
        executed = sum(i.difference["warp_instructions"] for i in now.recent)
        missed = sum(_l2_misses(i.difference) for i in now.recent)
        if missed * left < interval.l2_free_lines * executed:
            return False
        return interval.l2_free_lines > 0 or 2 * written < stored

    def _add_warps(self, now: _Current, interval: Interval) -> None:
        if self.preset == "span":
            begin, end = now.ctas.add(interval.warps)
        else:
            begin, end = _cycles(interval.warps, "begin"), _cycles(interval.warps, "end")
        if len(begin):
            now.warps.add(begin, end)

    @staticmethod
    def _covered(now: _Current) -> float:
        """Share of the instructions that are in stable blocks."""
        shares = now.analysis.block_shares
        return float(sum(shares[b] for b, s in now.blocks.items() if s.stable))

    def _add_blocks(self, now: _Current, interval: Interval) -> None:
        events = interval.blocks
        if now.settled_from:
            events = events[events["warp"] >= now.settled_from * now.view.warps_per_cta]
        blocks = events["block"]
        order = np.argsort(blocks, kind="stable")
        begin, end = _cycles(events, "begin")[order], _cycles(events, "end")[order]
        numbers, starts = np.unique(blocks[order], return_index=True)
        if len(numbers) == 0:
            return
        for number, first, last in zip(numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
            stability = now.blocks.setdefault(number, self._stability(self.block_window))
            stability.add(begin[first:last], end[first:last])

    def _block_cycles(self, now: _Current, interval: Interval) -> npt.NDArray[np.float64]:
        """Of each block: the mean of its last executions, or, where there were hardly any, the interval
        model's. With preset "span" the model is scaled to the blocks whose time is known: it knows nothing of
        the other warps, which issue in between."""
        code = now.view.code
        assert code is not None
        blocks = code.blocks
        instructions = [BlockInstruction.of(i) for i in code.instructions]
        latency = mean_by_opcode(instructions, interval.latencies)
        cycles = np.array(
            [
                block_cycles(instructions[first : first + length], latency)
                for first, length in zip(blocks.first.tolist(), blocks.length.tolist(), strict=True)
            ]
        )
        known = {b: s.mean() for b, s in now.blocks.items() if s.seen >= _FEW}
        if self.preset == "span" and known:
            weights = {b: now.blocks[b].seen for b in known}
            modelled = sum(weights[b] * cycles[b] for b in known)
            cycles *= sum(weights[b] * known[b] for b in known) / max(1.0, modelled)
        for b, mean in known.items():
            cycles[b] = mean
        if self.preset == "span":
            cycles *= now.scale
            if interval.counters["ctas_finished"] >= now.view.wave_size / 2:
                waiting = now.throughput.waiting(now.view.warps_per_cta)
                cycles *= waiting / now.analysis.unevenness(cycles, now.view.warps_per_cta)
        return cycles

    # --- after a launch ---------------------------------------------------------------------------------

    def extrapolate(self, launch: LaunchView, now: Interval, cycles: int) -> Projection:
        current = self._current
        assert current is not None and launch.code is not None
        work = current.analysis.instructions_per_warp * current.warp_count
        if current.like is not None:
            factor = work / max(1.0, current.like.work)
            counters = {name: value * factor for name, value in current.like.counters.items()}
            counters |= _exact(launch)
            how = f"of launch {current.like.index} * {factor:.4g}"
            return Projection(cycles, counters, dict.fromkeys(["cycles", *counters], how))
        kinds = kinds_of_work(launch.code.instructions, launch.code.blocks)
        types = current.analysis.types
        of_warp = types.weights @ types.counts.astype(np.float64)
        of_launch: float = current.warp_count
        if launch.warp_instructions is not None:
            of_launch = launch.warp_instructions / max(1.0, current.analysis.instructions_per_warp)
        total = {kind: float(of_warp @ each) * of_launch for kind, each in kinds.items()}
        # Where blocks were not observed, what was simulated is taken to be like the sample.
        done = now.counters["warp_instructions"]
        executed = current.executed if len(current.executed) else of_warp
        each_one = done / max(1.0, float(executed @ kinds["instructions"]))
        simulated = {kind: float(executed @ each) * each_one for kind, each in kinds.items()}
        total = {kind: max(value, simulated[kind]) for kind, value in total.items()}
        return extrapolate(now.counters, simulated, total, cycles, now.end, _exact(launch))

    def end(self, launch: LaunchView, result: LaunchResult) -> None:
        now = self._current
        if now is None or now.like is not None or not now.analysis.complete:
            return
        cycles = result.end_cycle - result.start_cycle - result.launch_latency
        first = launch.name not in self._functions
        self._functions.add(launch.name)
        self._done.append(_Done(now.analysis, launch.index, now.warp_count, cycles, _totals(result), first))


def _l2_misses(counters: Mapping[str, int]) -> int:
    return sum(n for name, n in counters.items() if name.startswith("l2.") and name.endswith(".miss"))


def _cycles(events: npt.NDArray[np.void], name: str) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = events[name].astype(np.int64)
    return values


def _exact(launch: LaunchView) -> dict[str, float]:
    known: dict[str, float] = {
        "ctas": launch.cta_count,
        "ctas_finished": launch.cta_count,
        "warps": launch.cta_count * launch.warps_per_cta,
    }
    if launch.warp_instructions is not None:
        known["warp_instructions"] = known["finished_instructions"] = launch.warp_instructions
    if launch.thread_instructions is not None:
        known["thread_instructions"] = launch.thread_instructions
    return known


def _totals(result: LaunchResult) -> dict[str, float]:
    """A launch's counters under the names of Interval.counters."""
    totals: dict[str, float] = dict(result.engine)
    for level, table in (("l1", result.l1), ("l2", result.l2)):
        for kind, row in table.items():
            totals |= {f"{level}.{kind}.{outcome}": n for outcome, n in row.items()}
    totals |= {f"stalls.{reason}": sum(row) for reason, row in result.stalls.items()}
    totals |= {f"warp_stalls.{reason}": n for reason, n in result.warp_stalls.items()}
    return totals
