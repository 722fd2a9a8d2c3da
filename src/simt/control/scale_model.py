"""Scale models: a launch's time from some of its CTAs, on a part of the GPU that has its share of all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simt import _engine
from simt.control.controller import GO_ON, Controller, Decision, Interval, LaunchView, Predict, RunningGpu
from simt.control.projection import Projection, exact_from, is_peak
from simt.control.systematic import Systematic
from simt.parameter_checks import real
from simt.run.slices import SLICE_SECONDS, new_engine
from simt.spec.models import SECTOR_BYTES, Spec
from simt.spec.scale_model import scale_model, with_room

if TYPE_CHECKING:
    from simt.result import LaunchResult

FEWEST_WAVES = 5
"""Of a launch that is not simulated whole, as of systematic sampling."""
SCALE = 0.03
"""Relative half width for what a part of the GPU does differently."""
_UNCERTAIN = 0.5
"""Of the difference between what CTAs of the part execute and what others do, and of a CTA of a part that
does not run all waves."""
_EVEN = 0.02
"""Relative difference of CTAs' instructions up to which they are alike."""
_MUCH_USE = 0.3
"""Of DRAM's peak, from which its banks matter where they hold what CTAs share."""
_FASTER = 2
"""DRAM of a part that shows whether its time is that of DRAM."""
_AGAIN = 1.5
"""Of what a part's CTAs access: reads of DRAM from which its L2 does not keep what they share."""
_LOOKED_AT = 16
_MANY = 1.5
"""Times `most_waves`: launches with fewer waves run all of them."""
_ENOUGH = 32
"""CTAs that differ, of a part that does not run all waves."""
_RUN, _RUNS = 4, 64
"""Of CTAs that differ: neighbours that the part has at most, and places of the grid that it has them from at
least. Fewer places have other CTAs than the launch has in the mean."""
_NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class _Others:
    """CTAs that the part does not have; each stands for so many."""

    ctas: list[int]
    each: float


@dataclass(frozen=True)
class _Found:
    """What a part of the GPU showed. source: of the launch; its signature names no other as long as it
    exists. ctas: of the part. waves: share of the launch's that it ran. other_work: relative difference of
    its CTAs' instructions to others'."""

    source: _engine.InstructionSource
    result: LaunchResult
    ctas: int
    sms: int
    waves: float
    other_work: float


class ScaleModel(Controller):
    """A scale model of the GPU, with systematic sampling: some SMs with their share of the L2, of DRAM and of
    the dispatch of CTAs run the same share of the launch's CTAs, and so as many waves (Liu et al., ISPASS
    2022; there for processors). In these, whole waves are left out between windows (see `Systematic`).

    The part's L2 begins with what that of the GPU holds, as far as its CTAs meet it. What its CTAs read
    together with others has room as in the whole L2, and is there already in the measure in which others
    would have brought it. All CTAs of a launch are executed for their values, unless it stores to unbacked
    arrays only.

    error, confidence: as of `Systematic`.
    """

    method = "scale-model"
    interval = _NO_LIMIT
    fewest_waves: int = FEWEST_WAVES
    most_waves: float = math.inf
    """Of CTAs that differ: of a launch that has many more, a part runs so many, and the time grows as the
    waves."""

    def __init__(self, error: float = 0.05, confidence: float = 0.95) -> None:
        self.error = error
        self.confidence = confidence

    def validate(self) -> None:
        real("error", self.error, 0, 1, open_low=True)
        real("confidence", self.confidence, 0, 1, open_low=True, open_high=True)

    def start(self) -> ScaleModel:
        self.simulated_: dict[object, _Found] = {}
        """Launches by what their time follows from."""
        self.known_: set[tuple[str, int]] = set()
        """Kernels whose code is in the instruction caches."""
        return super().start()

    @property
    def why_full(self) -> str:
        return self._refused

    def begin(self, launch: LaunchView) -> Decision:
        assert launch.code is not None
        kernel = launch.name, len(launch.code.instructions)
        is_known = kernel in self.known_
        self.known_.add(kernel)
        self._refused = _refusal(launch, self.fewest_waves)
        if self._refused or launch.gpu is None:
            return GO_ON
        even = _is_even(launch)
        if even is None:
            self._refused = "some of its CTAs do not end without others"
            return GO_ON
        simulated = self._simulated(launch, launch.gpu, even, is_known)
        if isinstance(simulated, str):
            self._refused = simulated
            return GO_ON
        found, leaves_values = simulated
        self._found = found
        cycles = (found.result.cycles - found.result.launch_latency) / found.waves
        return Predict(launch_cycles=round(cycles), executes=leaves_values)

    def _simulated(
        self, launch: LaunchView, gpu: RunningGpu, even: bool, is_known: bool
    ) -> tuple[_Found, bool] | str:
        """What the part of the GPU shows, and whether the launch leaves values; or why it would show
        nothing of the GPU. DRAM is as fast only if what is read of it has as many banks for each byte, and
        what many SMs read again is read for few by a part. That matters if faster DRAM makes it faster."""
        assert launch.code is not None
        source = launch.code.source
        part = scale_model(gpu.spec)
        share = part.sm.count / gpu.spec.sm.count
        waves = 1.0 if even else _share_of_waves(launch, self.most_waves, share)
        ctas, others = _chosen(launch.cta_count, share * waves, even)
        some = source.some_ctas(ctas)
        footprint = _engine.PartFootprint(some, [(source.some_ctas(o.ctas), o.each) for o in others])
        gpu.poll()
        part = with_room(part, gpu.spec, footprint.lines_of_others)
        engine = new_engine(part.native())
        held = tuple(engine.begin_as_part(gpu.engine, footprint, share))
        leaves_values = footprint.leaves_values or not source.leaves_no_values
        signature = "" if leaves_values else source.signature
        key = signature, launch.ctas_per_sm, held, is_known
        if signature and key in self.simulated_:
            return self.simulated_[key], leaves_values
        result = self._run(engine, part, launch, gpu, some, is_known)
        if _may_differ(result, part, gpu.spec, footprint):
            fast = _with_fast_dram(part)
            engine = new_engine(fast.native())
            engine.begin_as_part(gpu.engine, footprint, share)
            gain = 1 - self._run(engine, fast, launch, gpu, some, is_known).cycles / result.cycles
            if gain > SCALE:
                return (
                    "what its CTAs share is read from DRAM more often, or from fewer banks, on a part of the "
                    f"GPU, which would be {gain:.0%} faster with DRAM that is twice as fast"
                )
        followed = sum(len(some.ctas) for some in others)
        work = footprint.warp_instructions / len(ctas), footprint.other_warp_instructions / max(1, followed)
        found = _Found(
            source,
            result,
            len(ctas),
            part.sm.count,
            waves,
            abs(math.log(max(1.0, work[0]) / max(1.0, work[1]))),
        )
        if signature:
            self.simulated_[key] = found
        return found, leaves_values

    def _run(
        self,
        engine: _engine.Gpu,
        part: Spec,
        launch: LaunchView,
        gpu: RunningGpu,
        some: _engine.InstructionSource,
        is_known: bool,
    ) -> LaunchResult:
        """Some CTAs of the launch on a part of the GPU."""
        from simt.control.launch import LaunchControl
        from simt.result import Machine
        from simt.run.facts import Facts, launch_result

        if is_known:
            engine.follow(some, some.cta_count)
        facts = Facts(0, launch.id, launch.name, (some.cta_count, 1, 1), launch.block, 0, 0, 0)
        control = LaunchControl(
            Systematic(error=self.error, confidence=self.confidence).start(),
            index=0,
            id=launch.id,
            name=launch.name,
            grid=facts.grid,
            block=facts.block,
            sm_count=part.sm.count,
            l2_lines=part.l2_lines,
            dram_bytes_per_cycle=part.dram_bytes_per_cycle,
        )
        engine.launch(some, launch.id, controller=control)
        while not engine.run(_NO_LIMIT, [], SLICE_SECONDS):
            gpu.poll()
        (raw,) = engine.finished()
        return control.finish(raw, launch_result(raw, facts, Machine.from_spec(part.native())))

    def extrapolate(self, launch: LaunchView, now: Interval, cycles: int) -> Projection:
        found = self._found
        result, sampled = found.result, found.result.sampled
        assert sampled is not None
        grown = launch.cta_count / found.ctas
        more = SCALE + _UNCERTAIN * found.other_work
        if found.waves < 1:
            more += _UNCERTAIN / found.ctas
        counters: dict[str, float] = {
            "ctas": launch.cta_count,
            "ctas_finished": launch.cta_count,
            "warps": launch.cta_count * launch.warps_per_cta,
        }
        projected = {name: exact_from(launch, name) for name in counters}
        unprojected = {}
        halves = {"cycles": sampled.half_widths.get("cycles", 0.0) + more}
        for name, value in counters_of(result).items():
            if name in counters:
                continue
            if is_peak(name):
                counters[name], unprojected[name] = math.nan, "a peak: other CTAs may exceed it"
                continue
            counters[name] = value * grown
            projected[name] = f"of the part * {grown:.4g}, as its CTAs"
            halves[name] = sampled.half_widths.get(name, 0.0) + more
        projected["cycles"] = (
            "of the part" if found.waves == 1 else f"of the part / {found.waves:.4g}, as its waves"
        )
        return Projection(
            cycles,
            counters,
            projected,
            unprojected,
            half_widths=halves,
            reason=f"{found.ctas:,} of {launch.cta_count:,} CTAs on {found.sms} of {launch.sm_count} SMs; "
            + sampled.reason,
            part=result,
        )


def _refusal(launch: LaunchView, fewest_waves: int) -> str:
    """Why the launch is simulated whole; empty if it need not be."""
    if launch.order_matters:
        return "its CTAs influence each other, or may wait for each other: none can be left out"
    if launch.cluster_size > 1:
        return "its CTAs run in clusters, which are simulated together"
    if launch.gpu is None:
        return "other launches run beside it, or its accesses have properties of their own in the L2"
    waves = launch.cta_count / (launch.ctas_per_sm * launch.sm_count)
    if waves < fewest_waves:
        return f"it has {waves:.2f} waves of CTAs: fewer than {fewest_waves} are simulated whole"
    return ""


def _share_of_waves(launch: LaunchView, most: float, share: float) -> float:
    """Of the launch's waves, those that a part runs: all, if there are not many more or if it had few
    CTAs."""
    waves = launch.cta_count / (launch.ctas_per_sm * launch.sm_count)
    some = most / waves
    return some if waves >= _MANY * most and launch.cta_count * share * some >= _ENOUGH else 1.0


def _is_even(launch: LaunchView) -> bool | None:
    """Whether CTAs, spread over the grid, execute as many instructions; None if some do not end."""
    assert launch.code is not None
    preview = launch.code.preview(0.0, at_least_ctas=_LOOKED_AT, at_least_warps=1)
    if not preview.complete:
        return None
    of_ctas = (preview.counts @ launch.code.blocks.length).reshape(len(preview.ctas), -1).sum(axis=1)
    return bool(of_ctas.max() <= (1 + _EVEN) * of_ctas.min())


def _chosen(count: int, share: float, even: bool) -> tuple[list[int], list[_Others]]:
    """CTAs of the part, and others, of which is seen what they share with it. Equal CTAs: the first ones,
    which are neighbours as those of the launch are, and as many spread over the rest. Others: runs of
    neighbours, spread evenly over the grid, so that each wave has its mean; the CTAs beside them, and as many
    between."""
    wanted = round(count * share)
    if even:
        rest = count - wanted
        size = min(wanted, rest)
        spread = [wanted + int((i + 0.5) * rest / size) for i in range(size)]
        return list(range(wanted)), _others([], spread, rest)
    run = max(1, min(_RUN, wanted // _RUNS))
    runs = -(-wanted // run)
    spacing = count / runs
    some: list[int] = []
    beside: list[int] = []
    between: list[int] = []
    for number in range(runs):
        size = min(run, wanted - len(some))
        first, begin = int((number + 0.5) * spacing) - size // 2, int(number * spacing)
        some += range(first, first + size)
        beside += range(first + size, first + 2 * size)
        between += range(begin, begin + size)
    taken = set(some)
    beside = [cta for cta in beside if cta < count and cta not in taken]
    taken.update(beside)
    between = [cta for cta in between if cta not in taken]
    return some, _others(beside, between, count - len(taken))


def _others(beside: list[int], spread: list[int], count: int) -> list[_Others]:
    """spread: those that stand for so many."""
    found = [(beside, 1.0), (spread, count / max(1, len(spread)))]
    return [_Others(ctas, each) for ctas, each in found if ctas]


def _may_differ(result: LaunchResult, part: Spec, whole: Spec, footprint: _engine.PartFootprint) -> bool:
    """Whether DRAM may be slower on the part than on the GPU: it is used much, and what CTAs share does not
    fit into the L2, so that there are fewer banks for it, or is read again, which all SMs read together."""
    sectors = result.engine["dram_reads"] + result.engine["dram_writes"]
    if SECTOR_BYTES * sectors < _MUCH_USE * result.cycles * part.dram_bytes_per_cycle:
        return False
    once = footprint.lines * part.l2.slice.line_bytes / SECTOR_BYTES
    return footprint.shared_lines > whole.l2_lines or result.engine["dram_reads"] > _AGAIN * once


def _with_fast_dram(part: Spec) -> Spec:
    from simt.spec import load_spec

    return load_spec(part, {"clock.dram_mhz": _FASTER * part.clock.dram_mhz})


def counters_of(result: LaunchResult) -> Mapping[str, float]:
    """By name, as in Interval.counters."""
    found: dict[str, float] = dict(result.engine)
    for level, table in (("l1", result.l1), ("l2", result.l2)):
        found |= {f"{level}.{kind}.{out}": n for kind, row in table.items() for out, n in row.items()}
    found |= {f"stalls.{reason}": sum(row) for reason, row in result.stalls.items()}
    return found | {f"warp_stalls.{reason}": n for reason, n in result.warp_stalls.items()}
