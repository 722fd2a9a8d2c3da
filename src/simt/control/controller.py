"""Controllers: what they observe of a launch, and how they may respond."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from simt.methods import Method

if TYPE_CHECKING:
    from simt import _engine
    from simt.control.code import LaunchCode
    from simt.control.projection import Projection
    from simt.result import LaunchResult
    from simt.spec import Spec

Self = TypeVar("Self", bound="Controller")
PREVIEWED_CTAS = 16
_PREVIEWED_UNEQUAL_CTAS = 4096  # where CTAs differ: all of a launch of several waves, on most GPUs
_EVEN = 0.1  # excess of the largest CTA of a sample over the mean one up to which they do not differ
AS_PUBLISHED = "as published, without an interval: nothing says how far it is off"

WARP = np.dtype(
    [("cta", np.uint64), ("warp", np.uint32), ("begin", np.uint64), ("end", np.uint64)], align=True
)  # a finished warp; cycles since the first dispatch, begin: of its CTA
BLOCK = np.dtype(
    [("block", np.uint32), ("warp", np.uint64), ("begin", np.uint64), ("end", np.uint64)], align=True
)  # an executed basic block; warp: cta * warps per CTA + warp


@dataclass(frozen=True)
class GoOn:
    """Continue simulating in detail."""


@dataclass(frozen=True)
class Stop:
    """Simulate no more of the launch: its totals are projected (Controller.project)."""

    reason: str


@dataclass(frozen=True)
class Skip:
    """Do not simulate the next `ctas` CTAs of the grid, as if they did not exist; a program still executes
    them. Their accesses go into the L2. Controller.project adds their estimated cost.

    recent: share of the L2's lines, the most recently used, that stay so: those of CTAs still resident.
    """

    ctas: int
    reason: str = ""
    recent: float = 0.0


@dataclass(frozen=True, eq=False)
class Contention:
    """How predicted times depend on the resident warps.

    sm_scale: by SM, how much longer than predicted the rest of its residents takes.
    sm_warps: by SM, the warps that were resident while the times were measured. When no more CTAs are
        dispatched, a warp speeds up as others of its SM end, by the ratio of these to those left.
    fastest: the largest factor by which it speeds up.
    in_turn: the scheduler prefers some warps, which run fast while others wait for their turn.
    """

    sm_scale: npt.NDArray[np.float64]
    sm_warps: npt.NDArray[np.float64]
    fastest: float
    in_turn: bool = False


@dataclass(frozen=True, eq=False)
class Predict:
    """Do not simulate CTAs dispatched from now on, except for their dispatch and their resources.

    One of:

    warp_cycles: core cycles that each of their warps takes.
    block_cycles: core cycles of one execution of each basic block; a warp takes the sum over those it
        executes.
    launch_cycles: core cycles of the whole launch from its first dispatch; only as an answer to `begin`.
        executes: whether its CTAs are executed all the same, for the values that they leave.
        keeps_l2: whether the L2 stays as it was before the launch; by default its buffers are in it then.

    residents: also stop simulating resident CTAs: the rest of their warps is predicted in the same way, from
        their current position.
    contention: how the times depend on the other warps of an SM; None: they hold for any number of them.
    """

    warp_cycles: float | None = None
    block_cycles: npt.NDArray[np.float64] | None = None
    launch_cycles: float | None = None
    executes: bool = True
    keeps_l2: bool = False
    residents: bool = False
    contention: Contention | None = None
    reason: str = ""


Decision = GoOn | Stop | Skip | Predict
GO_ON = GoOn()


@dataclass(frozen=True)
class Previewed:
    """Warp instructions of a sample of a launch's CTAs: of the mean and largest. ctas: of the sample."""

    mean: float
    largest: float
    ctas: int

    def unequal(self, count: int) -> float:
        """By how much the largest of `count` CTAs exceeds the mean one, relative to that.

        The expected excess of the largest of n draws from an exponential distribution is in proportion to
        log n, nearly. A sample of one CTA says nothing: twice the mean is assumed.
        """
        if self.ctas < 2:
            return 1.0
        excess = self.largest / max(1.0, self.mean) - 1
        return excess * max(1.0, math.log(count) / math.log(self.ctas))

    @property
    def even(self) -> bool:
        """Whether the CTAs of the sample hardly differ."""
        return self.ctas > 1 and self.unequal(self.ctas) <= _EVEN


@dataclass(frozen=True, eq=False)
class RunningGpu:
    """The GPU when a launch begins that has all of it for itself.

    engine: to look at, not to run. poll: raises what is to end the run; called while it is kept waiting.
    """

    spec: Spec
    engine: _engine.Gpu
    poll: Callable[[], None]


@dataclass(frozen=True, eq=False)
class LaunchView:
    """What is known about a launch before it is simulated."""

    index: int  # position among the launches, from 0
    id: int
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    warps_per_cta: int
    ctas_per_sm: int  # that fit an SM at once
    sm_count: int
    l2_lines: int = 0  # capacity of the L2; 0: unknown
    dram_bytes_per_cycle: float = 0.0  # peak; 0: unknown
    # Of the whole launch, if its trace knows them; for a program in `project` and `extrapolate`, see
    # `counted`.
    warp_instructions: int | None = None
    thread_instructions: int | None = None
    known_from: str = "known of the launch"  # origin of the two, as text
    counted: bool = False  # whether it is a program whose unsimulated part is executed and counted
    empty_ctas: int = 0  # of the grid, without instructions in a trace; never dispatched
    order_matters: bool = False  # its CTAs influence each other through memory: Skip leaves none out
    cluster_size: int = 1  # CTAs that run together
    code: LaunchCode | None = None  # its basic blocks and previews of its warps
    gpu: RunningGpu | None = None  # if the launch has it for itself

    @property
    def cta_count(self) -> int:
        return math.prod(self.grid) - self.empty_ctas

    @cached_property
    def previewed(self) -> Previewed | None:
        """1 % of the CTAs (at least 16), spread over the grid; where these differ, as of a sparse matrix, at
        least 4,096, since a small sample lacks the largest. They are executed functionally, so call this
        before the launch runs. None if they cannot be executed to their end.
        """
        found = self._previewed(PREVIEWED_CTAS)
        return found if found is None or found.even else self._previewed(_PREVIEWED_UNEQUAL_CTAS)

    def _previewed(self, at_least: int) -> Previewed | None:
        if self.code is None:
            return None
        preview = self.code.preview(0.01, at_least_ctas=at_least, at_least_warps=1)
        if not preview.complete or not len(preview.ctas):
            return None
        of_warps = preview.counts.astype(np.float64) @ self.code.blocks.length
        of_ctas = of_warps.reshape(len(preview.ctas), -1).sum(axis=1)
        return Previewed(float(of_ctas.mean()), float(of_ctas.max()), len(of_ctas))

    @property
    def wave_size(self) -> int:
        """CTAs that the GPU holds at once; all CTAs, if the launch has fewer."""
        return min(self.cta_count, self.ctas_per_sm * self.sm_count)


@dataclass(frozen=True, eq=False)
class Interval:
    """The events between two observations.

    counters: sums since the launch began: the engine's counters by name (`warp_instructions`, `ctas` for
        those dispatched, `ctas_finished`, `dram_reads`, ...), cache lookups as `l1.KIND.OUTCOME` and
        `l2.KIND.OUTCOME`, `stalls.REASON` (scheduler cycles) and `warp_stalls.REASON` (warp-cycles).
    difference: the same, for this interval alone.
    latencies: with blocks, by static instruction: mean core cycles from issue until its result is available,
        since the launch began; NaN if it did not issue or writes no register.
    warps, blocks: those that finished in the interval (types WARP and BLOCK), for controllers that request
        them; sorted by end, SM, and order of occurrence on the SM.
    sm_instructions, sm_warp_cycles: by SM, sums since the launch began of warp instructions, and of core
        cycles of its resident warps.
    l2_free_lines: lines of the L2 that have never held data.
    skipped_ctas: CTAs left out since the launch began. skipped_warp_instructions,
        skipped_thread_instructions: what these execute. Where the engine pairs the input's warps, the former
        is estimated: a pair executes each basic block as often as the half that executes it more often.
    skipped_dram_sectors: 32-byte sectors that these would have read from DRAM or written back.
    """

    index: int  # from 0
    begin: int  # core cycles since the first dispatch
    end: int
    counters: Mapping[str, int]
    difference: Mapping[str, int]
    warps: npt.NDArray[np.void] = field(default_factory=lambda: np.empty(0, WARP))
    blocks: npt.NDArray[np.void] = field(default_factory=lambda: np.empty(0, BLOCK))
    latencies: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    sm_instructions: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    sm_warp_cycles: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    l2_free_lines: int = 0
    skipped_ctas: int = 0
    skipped_warp_instructions: int = 0
    skipped_thread_instructions: int = 0
    skipped_dram_sectors: int = 0

    @property
    def ctas_resident(self) -> int:
        """CTAs dispatched and not finished at the end of the interval."""
        return self.counters["ctas"] - self.counters["ctas_finished"]


class Controller(Method):
    """Decides during a launch how much of it is simulated, following the conventions of scikit-learn (see
    Method).

    A run calls `start` once and `for_launch` for every launch; the returned object is then called for that
    launch. To write a controller, subclass this, set `method` to a name, implement `observe`, and `validate`
    if there are parameters. `check_controller` checks what every controller must satisfy.

    interval: core cycles between observations, from the launch's first dispatch; read after `begin` and each
        `observe`.
    awaited_cta: if not None, there is also an observation when the next CTA with this ordinal or a later one
        has begun, and one when a Skip has taken effect, whose answer takes effect at once; read after `begin`
        and each `observe`.
    warps, blocks: whether observations include finished warps and executed basic blocks.
    """

    presets: ClassVar[dict[str, dict[str, Any]]] = {}  # parameters by the name of a variant
    interval: int = 500
    awaited_cta: int | None = None
    warps: bool = False
    blocks: bool = False

    @property
    def why_full(self) -> str:
        """Why the latest launch was simulated in full, if the controller gives a reason."""
        return ""

    @classmethod
    def variant(cls, text: str) -> dict[str, Any]:
        """Parameters of `METHOD:TEXT` on the command line. Raises KeyError or ValueError for other texts."""
        return cls.presets[text]

    def start(self: Self) -> Self:
        """Called before the first launch of a run: checks the parameters (ParameterError), and creates the
        information that launches share: lists and dictionaries under names that end in an underscore. Called
        again, it discards earlier runs. Returns the controller.
        """
        self.validate()
        return self

    def for_launch(self: Self, launch: LaunchView) -> Self:
        """The object that decides for this launch: a shallow copy, so that concurrent launches have separate
        attributes.
        """
        return copy.copy(self)

    def study(self, launch: LaunchView, intervals: Sequence[Interval]) -> None:
        """Called before `begin`, only in `what_if`, with all events of the launch, for methods that need a
        profile of it.
        """

    def begin(self, launch: LaunchView) -> Decision:
        """Called before anything is simulated."""
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        """Called at the end of each interval. A decision takes effect some cycles later, see docs/control."""
        return GO_ON

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        """The launch's totals after Stop, from the observations until the end of `now`. By default, the rest
        is assumed to continue at the average rate since the first dispatch.
        """
        from simt.control.projection import project

        return project(launch, now, now.counters, now.end)

    def extrapolate(self, launch: LaunchView, now: Interval, cycles: int) -> Projection:
        """The launch's totals after Predict.

        now: counters of the simulated part, until the last of it ended.
        cycles: from the first dispatch to the predicted end.
        """
        from simt.control.projection import by_instructions

        return by_instructions(launch, now, cycles)

    def end(self, launch: LaunchView, result: LaunchResult) -> None:
        """Called after the launch; `result` holds projected or predicted values, if any."""
