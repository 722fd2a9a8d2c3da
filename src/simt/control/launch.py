"""A launch under a controller: passes on the engine's queries and completes the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from simt import _engine
from simt.control.code import LaunchCode
from simt.control.controller import (
    BLOCK,
    WARP,
    Controller,
    Decision,
    GoOn,
    Interval,
    LaunchView,
    Predict,
    RunningGpu,
    Skip,
    Stop,
)
from simt.control.projection import apply, with_known
from simt.errors import ControlError
from simt.result.launch import LaunchResult
from simt.result.sampled import Sampled

if TYPE_CHECKING:
    from simt.engine_types import ControlAnswer, RawLaunch

_SKIPPED = (
    "skipped_ctas",
    "skipped_warp_instructions",
    "skipped_thread_instructions",
    "skipped_dram_sectors",
)
_PLACES = {name: i for i, name in enumerate(_engine.OBSERVED)}


class _Observed(Mapping[str, int]):
    """Counters by name, over the engine's array of them: most observations are asked for a few only."""

    def __init__(self, values: npt.NDArray[np.uint64]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> int:
        return int(self._values[_PLACES[name]])

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


class LaunchControl:
    """One launch under a controller. The engine calls `begin` and `observe`; `finish` is called with its
    result. `interval`, `awaited_cta`, `warps` and `blocks` are read after `begin`."""

    def __init__(
        self,
        controller: Controller,
        *,
        index: int,
        id: int,
        name: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        sm_count: int,
        l2_lines: int,
        dram_bytes_per_cycle: float,
        warp_instructions: int | None = None,
        threads: int = 1,
        gpu: Callable[[], RunningGpu | None] = lambda: None,
    ) -> None:
        """warp_instructions: of the whole launch, in warps of the input, if known. threads: host threads for
        previews. gpu: called when the launch begins."""
        self._controller = controller
        self._known: dict[str, Any] = {
            "index": index,
            "id": id,
            "name": name,
            "grid": grid,
            "block": block,
            "sm_count": sm_count,
            "l2_lines": l2_lines,
            "dram_bytes_per_cycle": dram_bytes_per_cycle,
            "warp_instructions": warp_instructions,
        }
        self._gpu = gpu
        self._threads = threads
        self._view: LaunchView | None = None
        self._executes = True  # whether what is not simulated is executed
        self._last = np.zeros(len(_engine.OBSERVED), np.uint64)
        self._interval = Interval(-1, 0, 0, _Observed(self._last), _Observed(self._last))

    # --- called by the engine ---------------------------------------------------------------------------

    @property
    def interval(self) -> int:
        interval = int(self._controller.interval)
        if interval < 1:
            raise self._error(f"its interval is {interval} core cycles, expected 1 or more")
        return interval

    @property
    def awaited_cta(self) -> int | None:
        return self._controller.awaited_cta

    @property
    def warps(self) -> bool:
        return bool(self._controller.warps)

    @property
    def blocks(self) -> bool:
        return bool(self._controller.blocks)

    def begin(
        self, source: _engine.InstructionSource, warps_per_cta: int, ctas_per_sm: int
    ) -> ControlAnswer | None:
        if isinstance(source, _engine.PairedWarps):  # warps of the engine are not those of the input
            self._known["warp_instructions"] = None
        self._order_matters = source.order_matters
        view = self._view = LaunchView(
            warps_per_cta=warps_per_cta,
            ctas_per_sm=ctas_per_sm,
            empty_ctas=math.prod(self._known["grid"]) - source.cta_count,
            order_matters=source.order_matters,
            cluster_size=source.cluster_size,
            code=LaunchCode(source, warps_per_cta, self._threads),
            counted=isinstance(source, _engine.functional.ExecutedSource),
            gpu=self._gpu(),
            **self._known,
        )
        with self._named("begin"):
            self._controller = self._controller.for_launch(view)
            decision = self._controller.begin(view)
        return self._answer(decision, view, at_begin=True)

    def observe(
        self,
        index: int,
        begin: int,
        end: int,
        counters: bytes,
        warps: bytes,
        blocks: bytes,
        latencies: bytes,
        sm_instructions: bytes,
        sm_warp_cycles: bytes,
        l2_free_lines: int,
        skipped: tuple[int, int, int, int],
    ) -> ControlAnswer | None:
        values = np.frombuffer(counters, np.uint64)
        self._interval = Interval(
            index,
            begin,
            end,
            _Observed(values),
            _Observed(values - self._last),
            np.frombuffer(warps, WARP),
            np.frombuffer(blocks, BLOCK),
            np.frombuffer(latencies, np.float64),
            np.frombuffer(sm_instructions, np.uint64),
            np.frombuffer(sm_warp_cycles, np.uint64),
            l2_free_lines,
            *skipped,
        )
        self._last = values
        with self._named("observe"):
            decision = self._controller.observe(self._interval)
        assert self._view is not None
        return self._answer(decision, self._view, at_begin=False)

    # --- after the launch -------------------------------------------------------------------------------

    def finish(self, raw: RawLaunch, result: LaunchResult) -> LaunchResult:
        """The launch's result, with totals in place of the part that was not simulated; the controller sees
        it.

        raw: the engine's record of the launch. result: made from it, with cycles shifted by the projected
            cycles of the launches before.
        """
        view, simulated = self._view, raw["sampled"]
        assert view is not None and simulated is not None
        kind: Literal["full", "stop", "skip", "predict"] = "full"
        at_cycle: int | None = None
        decisions = simulated["decisions"]
        for cycle, decided, _ in decisions:
            if decided == "skip" and not simulated["skipped_ctas"]:
                continue
            if kind == "full" or decided == "stop":
                kind, at_cycle = decided, cycle
        refused = kind == "full" and any(decided == "skip" for _, decided, _ in decisions)
        sampled = Sampled(
            method=self._controller.label(),
            decision=kind,
            reason="; ".join(dict.fromkeys(reason for _, _, reason in decisions if reason)),
            at_cycle=at_cycle,
            cycles=simulated["detailed_cycle"] - raw["start_cycle"],
            ctas=result.engine["ctas_finished"],
            warp_instructions=result.engine["warp_instructions"],
            thread_instructions=result.engine["thread_instructions"],
            total_ctas=view.cta_count,
        )
        if kind == "full":
            why = "its CTAs influence each other, so none can be left out" if refused else ""
            result = replace(result, sampled=replace(sampled, reason=why or self._controller.why_full))
        else:
            view = self._with_executed(view, simulated["executed"] if self._executes else None, result)
            now = self._interval if kind == "stop" else self._at_end(result, sampled.cycles)
            with self._named("project" if kind in ("stop", "skip") else "extrapolate"):
                if kind == "predict":
                    cycles = result.cycles - result.launch_latency
                    projection = self._controller.extrapolate(view, now, cycles)
                else:
                    projection = self._controller.project(view, now)
                result = apply(result, view, now, with_known(projection, view), sampled)
        with self._named("end"):
            self._controller.end(view, result)
        return result

    def _with_executed(
        self, view: LaunchView, executed: tuple[int, int] | None, result: LaunchResult
    ) -> LaunchView:
        """With the instructions of the whole launch, if the part that was not simulated was counted."""
        if executed is None or not view.counted:
            return view
        how = "the rest was executed and counted"
        if self._order_matters:
            how += ", without timing: waiting loops may take a different number of iterations"
        return replace(
            view,
            warp_instructions=result.engine["warp_instructions"] + executed[0],
            thread_instructions=result.engine["thread_instructions"] + executed[1],
            known_from=how,
        )

    def _at_end(self, result: LaunchResult, cycles: int) -> Interval:
        """The last interval, with the totals of all that was simulated."""
        counters = dict(result.engine)
        for level, table in (("l1", result.l1), ("l2", result.l2)):
            counters |= {f"{level}.{kind}.{out}": n for kind, row in table.items() for out, n in row.items()}
        counters |= {f"stalls.{reason}": sum(row) for reason, row in result.stalls.items()}
        counters |= {f"warp_stalls.{reason}": n for reason, n in result.warp_stalls.items()}
        before = self._interval
        difference = {name: n - before.counters.get(name, 0) for name, n in counters.items()}
        end = max(0, cycles - result.launch_latency)
        last = Interval(before.index + 1, min(before.end, end), end, counters, difference)
        return replace(last, **{name: getattr(before, name) for name in _SKIPPED})

    def _answer(self, decision: Decision, view: LaunchView, at_begin: bool) -> ControlAnswer | None:
        if isinstance(decision, GoOn):
            return None
        if isinstance(decision, Stop):
            return {"kind": 1, "reason": decision.reason}
        if isinstance(decision, Skip):
            if decision.ctas < 1:
                raise self._error(f"Skip of {decision.ctas} CTAs, expected 1 or more")
            return {
                "kind": 2,
                "reason": decision.reason,
                "ctas": int(decision.ctas),
                "recent": float(decision.recent),
            }
        if not isinstance(decision, Predict):
            raise self._error(
                f"it answered {decision!r}, expected GO_ON, Stop(...), Skip(...) or Predict(...)"
            )
        given = [
            name
            for name in ("warp_cycles", "block_cycles", "launch_cycles")
            if getattr(decision, name) is not None
        ]
        if len(given) != 1:
            raise self._error(
                f"Predict with {' and '.join(given) or 'nothing'}, "
                f"expected one of warp_cycles, block_cycles and launch_cycles"
            )
        answer: ControlAnswer = {"kind": 3, "reason": decision.reason, "residents": decision.residents}
        cycles = np.atleast_1d(np.asarray(getattr(decision, given[0]), np.float64))
        if not np.all(np.isfinite(cycles)) or np.any(cycles < 0):
            raise self._error(f"Predict with {given[0]} that are negative or not finite")
        if decision.block_cycles is not None:
            if view.code is None or cycles.shape != (len(view.code.blocks),):
                wanted = "no" if view.code is None else len(view.code.blocks)
                raise self._error(f"Predict with {cycles.size} block_cycles; the kernel has {wanted} blocks")
            answer["block_cycles"] = cycles.tolist()
        else:
            answer["executes"] = self._executes = decision.executes
            answer["keeps_l2"] = decision.keeps_l2
            answer["warp_cycles" if decision.launch_cycles is None else "launch_cycles"] = max(
                1.0, float(cycles[0])
            )
        if decision.launch_cycles is not None and not at_begin:
            raise self._error("Predict with launch_cycles answers begin() only")
        shared = decision.contention
        if shared is not None:
            answer["sm_scale"] = np.asarray(shared.sm_scale, np.float64).tolist()
            answer["sm_warps"] = np.asarray(shared.sm_warps, np.float64).tolist()
            answer["fastest"] = float(shared.fastest)
            answer["in_turn"] = bool(shared.in_turn)
            values = [*answer["sm_scale"], *answer["sm_warps"], answer["fastest"]]
            if len(values) != 2 * view.sm_count + 1 or not all(math.isfinite(v) and v >= 0 for v in values):
                raise self._error(
                    f"Predict with {shared!r}, expected a number from 0 on for each of {view.sm_count} SMs"
                )
        return answer

    def _error(self, what: str) -> ControlError:
        name = self._controller.label()
        return ControlError(f"controller {name}, launch {self._known['id']} ({self._known['name']}): {what}")

    @contextmanager
    def _named(self, method: str) -> Iterator[None]:
        """Adds the controller, the launch and the method to any exception raised in the controller."""
        try:
            yield
        except Exception as error:
            raise self._error(f"{method}: {type(error).__name__}: {error}") from error
