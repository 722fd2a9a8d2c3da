"""The time and energy of a launch, from what is simulated of it.

A launch of several waves runs on a scale model of the GPU (`simt.control.scale_model`); of equal CTAs with a
long loop, only the first waves do, twice, with few passes, and of CTAs that make different numbers of passes
some from everywhere. Of others, parts are simulated: the first waves of their CTAs, with part of their loops.
A launch of equal CTAs of a long loop takes `start + makespan`, where a CTA with s passes takes `fixed +
rate s`, and the makespan is that of all CTAs in their order on the places that the GPU has for them. Three
launches of parts give the three values: one wave with few passes, one wave with more, and two waves with few.
A kernel without a loop takes `start + rate x CTAs`, from two launches. What is as large as its parts is
simulated whole.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simt import _engine
from simt.cache import cache_directory, used, write_whole
from simt.control.controller import GO_ON, Decision, LaunchView, Predict
from simt.control.scale_model import FEWEST_WAVES, ScaleModel
from simt.errors import ControlError, SimtError, SpecError

if TYPE_CHECKING:
    from simt.gpu import GPU
    from simt.result import LaunchResult
    from simt.run.l2 import Use
    from simt.spec import Spec

    from .works import Work

Way = Literal["whole", "parts", "scale model"]
"""How a launch's time is found."""
_NEEDS_VALUES = ("decode_attention",)
"""Kernels with tensors that must have memory, of which a scale model would execute all CTAs: pages go through
shared memory, and so do keys, and what comes from there is not told apart."""
_ERROR, _PLAIN_ERROR = 0.05, 0.01
"""Of the time, asked of systematic sampling on a scale model; of kernels without a loop, which take little
time there, and often wait for DRAM, whose write-backs differ from wave to wave."""
_ALL = 1e-9
"""Error at which systematic sampling leaves nothing out."""
_MODEL_WAVES = 5
"""Of the parts of a launch of equal CTAs on a scale model. The first wave of an H100 is up to a tenth faster
than later ones."""
_UNEQUAL_WAVES = 4
"""Of CTAs that make different numbers of passes."""
_FROM = 1.3
"""A launch is simulated whole if its CTAs make less than this many times the passes that its parts would
make."""
_WAVES = (1, 2)
"""Waves of the two parts of a kernel without a loop."""
_BY_TIME = ("active SMs", "idle SMs", "chip", "board")
"""Components of energy that count by time."""
_LINK = "link"
"""The resource of what comes from other GPUs."""
_SHARED = ("DRAM bandwidth", "L2", _LINK)
"""Resources that CTAs share, so that few of them are faster than many: the last wave takes its part of a
wave's time."""
_BOUND = 0.5
"""Share of the time that the largest bound takes where a resource limits a launch; otherwise latencies do."""
_MEMORY = 1 << 38
"""Bytes of device memory, most of them never touched: tensors of each part have places of their own."""


_Times = tuple[float, float, float]
"""Seconds until CTAs run, those of one without passes, and those of a pass."""


@dataclass(frozen=True)
class LaunchEstimate:
    """A launch's time and energy.

    seconds: from its begin to that of what depends on it. low, high: without errors of the extrapolation,
    between these lie what is not known of the last wave. joules: None if energies of the GPU are not known;
    joules_error: their relative 95 % interval. limit: the resource that sets the pace, or "latency". way:
    how it was simulated. stated: the relative half width that the scale model states, 0 without one.
    simulated: passes of CTAs that were simulated, of those that the launch makes. processor: seconds that
    this took. confidence: of the simulated launches against silicon.
    """

    seconds: float
    low: float
    high: float
    joules: float | None
    joules_error: float
    limit: str
    way: Way
    stated: float
    simulated: float
    processor: float
    confidence: tuple[float, float] | None


@dataclass(frozen=True)
class _Part:
    """A simulated part. latency: of its seconds, those before its first CTA. dynamic, static: J of events,
    and W of what counts by time. bounds: cycles by resource, and `time`."""

    ctas: int
    passes: int
    seconds: float
    latency: float
    dynamic: float
    static: float
    bounds: Mapping[str, float]


@dataclass(frozen=True)
class _Measured:
    """What was simulated of a launch: parts, or all of it as one. slots: CTAs that the GPU holds at once.
    stated: of a scale model, the half width of the time. done: passes that were simulated. error: of the
    energy, relative; None if energies are not known. low, high: see `Confidence`. processor: seconds."""

    slots: int
    way: Way
    parts: tuple[_Part, ...]
    stated: float
    done: float
    error: float | None
    low: float | None
    high: float | None
    processor: float

    def estimate(self, work: Work, least: float) -> LaunchEstimate:
        """least: seconds that it takes at least."""
        last = self.parts[-1]
        if len(self.parts) == 1:
            seconds = (last.seconds, last.seconds, last.seconds)
            dynamic, limit = last.dynamic, _limit(last)
        else:
            limit = _limit(last, self.parts[-2])
            if self.way == "scale model":
                seconds, dynamic = self._of_waves(work, limit)
            else:
                seconds, dynamic = self._looping(work, limit) if work.has_loop else self._plain(work)
            seconds = (max(seconds[0], least), max(seconds[1], least), max(seconds[2], least))
        joules = None if self.error is None else dynamic + last.static * seconds[1]
        sure = None if self.low is None or self.high is None else (self.low, self.high)
        return LaunchEstimate(
            seconds[1],
            seconds[0],
            seconds[2],
            joules,
            self.error or 0.0,
            limit,
            self.way,
            self.stated,
            self.done / work.passes,
            self.processor,
            sure,
        )

    def _plain(self, work: Work) -> tuple[tuple[float, float, float], float]:
        first, second = self.parts
        more = (work.grid - second.ctas) / (second.ctas - first.ctas)
        seconds = second.seconds + more * (second.seconds - first.seconds)
        return (seconds, seconds, seconds), second.dynamic + more * (second.dynamic - first.dynamic)

    def _of_waves(self, work: Work, limit: str) -> tuple[tuple[float, float, float], float]:
        """From two launches of as many whole waves. What the first CTAs take to begin counts as time of all:
        it is divided by the waves."""
        few, many = self.parts
        waves, passes = many.ctas / self.slots, many.passes - few.passes
        rate = max(0.0, many.seconds - few.seconds) / (passes * waves)
        fixed = max(0.0, (few.seconds - few.latency) / waves - few.passes * rate)
        per_pass = (many.dynamic - few.dynamic) / (passes * many.ctas)
        per_cta = few.dynamic / few.ctas - few.passes * per_pass
        times = self._between(work, limit, (few.latency, fixed, rate), (few.latency, fixed, rate))
        return times, per_cta * work.grid + per_pass * work.passes

    def _between(
        self, work: Work, limit: str, by_place: _Times, by_rate: _Times
    ) -> tuple[float, float, float]:
        """The least, best and largest time of all CTAs: each has a place for itself, or all share a rate."""
        start, fixed, rate = by_place
        listed = start + _makespan(work.steps, self.slots, fixed, rate)
        start, fixed, rate = by_rate
        longest = fixed + rate * max(steps for _, steps in work.steps)
        shared = start + max(longest, (work.grid * fixed + work.passes * rate) / min(self.slots, work.grid))
        return min(shared, listed), shared if limit in _SHARED else listed, max(shared, listed)

    def _looping(self, work: Work, limit: str) -> tuple[tuple[float, float, float], float]:
        first, few, many = self.parts[0], self.parts[-2], self.parts[-1]
        passes = many.passes - few.passes
        per_pass = (many.dynamic - few.dynamic) / (passes * many.ctas)
        per_cta = 0.0
        if few.ctas > first.ctas:
            per_cta = (few.dynamic - first.dynamic) / (few.ctas - first.ctas) - few.passes * per_pass

        def fitted(waves: float) -> _Times:
            """Start, and a CTA's time without passes and of one, if the larger parts have so many waves."""
            rate = max(0.0, many.seconds - few.seconds) / (passes * waves)
            fixed = 0.0
            if waves > 1:
                fixed = max(0.0, (few.seconds - first.seconds) / (waves - 1) - few.passes * rate)
            return many.seconds - waves * (fixed + many.passes * rate), fixed, rate

        by_place, by_rate = fitted(-(-many.ctas // self.slots)), fitted(max(1.0, many.ctas / self.slots))
        dynamic = (
            many.dynamic
            + per_cta * (work.grid - many.ctas)
            + per_pass * (work.passes - many.passes * many.ctas)
        )
        return self._between(work, limit, by_place, by_rate), dynamic


def fastest(work: Work, spec: Spec) -> tuple[Work, LaunchEstimate]:
    """The launch, or the same with the other tile that takes the least time, and its estimate."""
    found = [(one, estimate(one, spec)) for one in (work, *work.others)]
    return min(found, key=lambda each: each[1].seconds)


def to_simulate(work: Work, spec: Spec) -> frozenset[Path]:
    """Files of the cache that `fastest` would have to write."""
    files = {_path(one, spec, None) for one in (work, *work.others)}
    return frozenset(path for path in files if not path.is_file())


def parts_of(work: Work, spec: Spec) -> frozenset[Path]:
    """Files of the cache with the parts of the launches that `fastest` compares; several launches may have
    the same ones."""
    return frozenset(_path(one.like or one, spec, "parts") for one in (work, *work.others))


def estimate(work: Work, spec: Spec, way: Way | None = None) -> LaunchEstimate:
    """A launch's time on a GPU. What was simulated is in the cache, and not simulated again.

    way: by default a scale model if the launch has enough waves and one can be made, otherwise parts. Raises
    SimtError if it cannot be simulated so.
    """
    weights = min(work.nbytes, sum(t.nbytes for t in work.tensors.values() if t.role == "weight"))
    least = weights / (spec.dram_bytes_per_cycle * spec.clock.core_mhz * 1e6)
    return _measured(work, spec, way).estimate(work, least)


def _measured(work: Work, spec: Spec, way: Way | None) -> _Measured:
    path = _path(work, spec, way)
    if path.is_file():
        used(path)
        data = json.loads(path.read_text())
        return _Measured(**{**data, "parts": tuple(_Part(**part) for part in data["parts"])})
    if way is None:
        found = _by_waves(work, spec)
    elif way == "scale model":
        found = _Simulated(work, spec, _controller(work)).on_scale_model()
    else:
        found = _Simulated(work, spec).measured(way == "whole")
    write_whole(path, json.dumps(asdict(found)).encode())
    return found


def _by_waves(work: Work, spec: Spec) -> _Measured:
    has_model = work.kind not in _NEEDS_VALUES and not work.fetched
    if has_model and work.grid >= FEWEST_WAVES * spec.sm.count:
        with suppress(_NoScaleModel, SpecError):
            return _measured(work, spec, "scale model")
    return _measured(work.like or work, spec, "parts")


class _NoScaleModel(SimtError):
    """A launch cannot be timed on a scale model."""


class _OnlyScaleModel(ScaleModel):
    """Raises _NoScaleModel for a launch of more than one CTA that it would simulate whole. The L2 stays as it
    was, for the next part of the launch."""

    def take_parts(self) -> None:
        """Launches have few waves, of which none is left out."""
        self.fewest_waves, self.error = 1, _ALL

    def begin(self, launch: LaunchView) -> Decision:
        decision = super().begin(launch)
        if decision is GO_ON and launch.cta_count > 1:
            raise _NoScaleModel(self.why_full)
        return replace(decision, keeps_l2=True) if isinstance(decision, Predict) else decision


def _controller(work: Work) -> _OnlyScaleModel:
    if not work.has_loop:
        return _OnlyScaleModel(_PLAIN_ERROR)
    if len(work.steps) == 1:
        return _OnlyScaleModel(_ERROR)
    found = _OnlyScaleModel(_ALL)  # waves of CTAs that differ do not tell what one between them takes
    found.most_waves = _UNEQUAL_WAVES
    return found


class _Simulated:
    """controller: of its launches, which then have tensors without memory."""

    def __init__(self, work: Work, spec: Spec, controller: _OnlyScaleModel | None = None) -> None:
        from simt.gpu import GPU

        from .linked import LinkedGpu

        self._work = work
        self._controller = controller
        kind = LinkedGpu if work.fetched else GPU
        self._gpu: GPU = kind(spec, memory=_MEMORY, launches="1,3-", controller=controller)
        self._l2 = spec.l2_lines * spec.l2.slice.line_bytes
        self._kept: list[Any] = []
        self._ready: Mapping[str, Any] | None = None

    def measured(self, whole: bool) -> _Measured:
        """All of the launch, or its parts; all if it is hardly larger than these."""
        begin = time.process_time()
        slots = self._slots()
        plan = [] if whole else self._plan(slots)
        if sum(ctas * max(1, passes) for ctas, passes in plan) * _FROM > self._work.passes:
            plan = []
        parts = tuple(self._part(*part)[1] for part in plan) or (self._part(self._work.grid, None)[1],)
        way: Way = "parts" if plan else "whole"
        done = sum(part.ctas * max(1, part.passes) for part in parts) if plan else self._work.passes
        return self._found(slots, way, parts, 0.0, done, begin)

    def on_scale_model(self) -> _Measured:
        assert self._controller is not None
        begin = time.process_time()
        slots = self._slots()
        if self._work.grid < FEWEST_WAVES * slots:
            raise _NoScaleModel(f"it has fewer than {FEWEST_WAVES} waves of CTAs")
        plan = self._plan_of_waves(slots)
        if plan:
            self._controller.take_parts()
        try:
            found = [self._part(*part) for part in plan] or [self._part(self._work.grid, None)]
        except ControlError as error:  # which names the launch
            if isinstance(error.__cause__, _NoScaleModel):
                raise error.__cause__ from None
            raise
        stated, done = 0.0, 0.0
        for launch, part in found:
            assert launch.sampled is not None  # by the controller
            stated = max(stated, launch.sampled.half_widths["cycles"])
            passes = part.passes if plan else self._work.passes / self._work.grid
            done += launch.sampled.ctas * passes
        return self._found(slots, "scale model", tuple(part for _, part in found), stated, done, begin)

    def _found(
        self, slots: int, way: Way, parts: tuple[_Part, ...], stated: float, done: float, begin: float
    ) -> _Measured:
        result = self._gpu.result()
        try:
            energy: Any = result.energy
            error = (energy.interval[1] - energy.joules) / energy.joules
        except SimtError:
            error = None
        sure = result.confidence
        spent = time.process_time() - begin
        return _Measured(slots, way, parts, stated, done, error, sure.low, sure.high, spent)

    def _slots(self) -> int:
        """CTAs that the GPU holds at once. From now on, all SMs have the kernel in their instruction
        caches."""
        if self._controller is None:
            arrays = self._begin()
        else:  # the L2 is filled once
            arrays = self._work.allocate(self._gpu, unbacked=True)
            self._kept.append(arrays)
        first = self._work.launch(self._gpu, arrays, 1, 1)
        assert first is not None  # timed
        self._work.launch(self._gpu, arrays, 1, 1)  # not timed
        facts = math.prod(first.block), first.shared_bytes, first.registers
        return self._gpu.spec.sm.count * _engine.occupancy(self._gpu.native_spec, *facts)[0]

    def _plan(self, slots: int) -> list[tuple[int, int]]:
        """CTAs and passes of the parts; none for a launch too small for them."""
        work = self._work
        if not work.has_loop:
            return [(waves * slots, 0) for waves in _WAVES] if work.grid > _WAVES[1] * slots else []
        most, long = work.more, _reaching(work, work.more)
        if long < 2 * slots:
            most, long = work.alone, _reaching(work, work.alone)
        if work.steps[0][1] <= most:
            return []
        two = min(long, 2 * slots)
        if two <= slots:
            return [(two, work.few), (two, most)]
        return [(slots, work.few), (two, work.few), (two, most)]

    def _plan_of_waves(self, slots: int) -> list[tuple[int, int]]:
        """CTAs and passes of the parts on a scale model; none for a launch that has all passes there."""
        work = self._work
        if work.on_model is None or sum(work.on_model) * _FROM > work.steps[0][1]:
            return []
        return [(_MODEL_WAVES * slots, passes) for passes in work.on_model]

    def _part(self, ctas: int, passes: int | None) -> tuple[LaunchResult, _Part]:
        from simt.explain.bounds import bounds

        launch = self._run(ctas, passes)
        seconds = launch.seconds
        dynamic = static = 0.0
        with suppress(SimtError):
            energy = launch.energy
            by_time = sum(energy.components.get(name, 0.0) for name in _BY_TIME)
            dynamic, static = energy.joules - by_time, by_time / seconds
        found = {bound.resource: bound.cycles for bound in bounds(launch, self._gpu.spec)}
        if self._work.fetched:
            found[_LINK] = self._link_cycles(ctas)
        found["time"] = float(launch.cycles)
        latency = seconds * launch.launch_latency / launch.cycles
        return launch, _Part(ctas, passes or 0, seconds, latency, dynamic, static, found)

    def _link_cycles(self, ctas: int) -> float:
        """Cycles of the SMs in which the link brings what so many CTAs fetch."""
        spec = self._gpu.spec
        mb_per_s = spec.peer_link.bandwidth or spec.host_link.bandwidth
        return self._work.fetched * ctas / self._work.grid * spec.clock.core_mhz / mb_per_s

    def _run(self, ctas: int, passes: int | None) -> LaunchResult:
        if self._controller is None or self._ready is None:
            self._ready = self._begin()
        launch = self._work.launch(self._gpu, self._ready, ctas, passes)
        assert launch is not None  # nothing is left out
        return launch

    def _begin(self) -> Mapping[str, Any]:
        """Tensors, and what the L2 holds when the launch begins."""
        from simt.run.l2 import MemoryRows
        from simt.run.session import QueuedTransfer

        gpu, work = self._gpu, self._work
        arrays = work.allocate(gpu, unbacked=self._controller is not None)
        scratch = gpu.empty(self._l2, "u1")
        self._kept += [arrays, scratch]  # no later part finds their lines in the L2
        sizes = {
            role: sum(t.nbytes for t in work.tensors.values() if t.role == role)
            for role in ("input", "output")
        }
        # The L2 is full of what came before: written, if this operator's neighbours write as much as it does.
        use: Use = "written" if sizes["output"] >= self._l2 // 2 else "read"
        touched = [MemoryRows(scratch.address, scratch.nbytes, use=use)]
        if sizes["input"] <= self._l2 // 2:
            inputs = [arrays[name] for name, tensor in work.tensors.items() if tensor.role == "input"]
            touched += [MemoryRows(array.address, array.nbytes, use="written") for array in inputs]
        gpu.transfer(QueuedTransfer(touched=touched))
        gpu.synchronize()
        return arrays


def _makespan(steps: Sequence[tuple[int, int]], places: int, fixed: float, rate: float) -> float:
    """When the last CTA ends if each begins, in order, at the first place that is free."""
    if len(steps) == 1:
        return -(-steps[0][0] // places) * (fixed + rate * steps[0][1])
    free = [0.0] * places
    for ctas, passes in steps:
        for _ in range(ctas):
            heapq.heapreplace(free, free[0] + fixed + rate * passes)
    return max(free)


def _limit(part: _Part, before: _Part | None = None) -> str:
    """What sets the pace in a part, or in what it has more than another."""
    grown = {
        name: cycles - (before.bounds.get(name, 0.0) if before else 0.0)
        for name, cycles in part.bounds.items()
    }
    whole = grown.pop("time")
    name, cycles = max(grown.items(), key=lambda item: item[1], default=("latency", 0.0))
    return name if whole > 0 and cycles >= _BOUND * whole else "latency"


def _reaching(work: Work, passes: int) -> int:
    """CTAs that make so many passes; the others end before."""
    return sum(ctas for ctas, own in work.steps if own >= passes)


def _path(work: Work, spec: Spec, way: Way | None) -> Path:
    """Of what was simulated of a launch, in the cache."""
    lengths = work.few, work.more, work.alone, work.on_model
    text = repr((_engine_hash(), spec.hash, work.kind, work.shape, work.grid, work.steps, *lengths, way))
    return cache_directory("models") / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@lru_cache(maxsize=1)
def _engine_hash() -> str:
    """Of the engine, Triton, and the files that decide what is simulated and how it is extrapolated."""
    import triton

    from simt.control import projection, systematic
    from simt.control import scale_model as controller
    from simt.spec import scale_model as part

    found = hashlib.sha256(triton.__version__.encode())
    own = (Path(__file__).with_name(f"{name}.py") for name in ("kernels", "works", "linked", "scaled"))
    others = (Path(str(module.__file__)) for module in (_engine, controller, systematic, projection, part))
    for path in (*others, *own):
        found.update(path.read_bytes())
    return found.hexdigest()
