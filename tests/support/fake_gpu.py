"""A stand-in for the native engine, the trace reader and the specifications, with the same interface.

It lets the tests of simulate, Result and the command line be exact and fast: every launch takes 1000 cycles
for each of its CTAs after a launch latency of 500, one launch after the other.
"""

from __future__ import annotations

import math
import pickle
import sys
import types
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A Result imports these late, when simt.spec may be the fake.
import simt.explain
import simt.power
import simt.validate.confidence  # noqa: F401
from simt._engine import COUNTERS
from simt.result.counters import ALL_KINDS, LOOKUP_OUTCOMES
from simt.result.launch import PACKED

CTA_CYCLES, LATENCY, INSTRUCTIONS = 1000, 500, 640
CALL_CYCLES = 1000  # of a call of `Gpu.run` that ends by time
STATES = (
    "selected",
    "not_selected",
    "wait",
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "math_pipe_throttle",
)
OUTCOMES = (*LOOKUP_OUTCOMES, "reservation_fail")

SPEC: dict[str, Any] = {
    "name": "toy",
    "sm_version": 80,
    "launch": {"max_concurrent_kernels": 1},
    "sm": {
        "count": 4,
        "sub_cores": 4,
        "max_warps": 64,
        "warp_size": 32,
        "scheduler": {"issue_width": 1},
        "units": {
            "fp32": {"count": 4, "initiation_interval": 2},
            "tensor": {"count": 4, "initiation_interval": 8},
        },
        "half_rate_fp32_accumulation": False,
    },
    "dram": {
        "bus_bytes": 8,
        "data_command_ratio": 2,
        "banks": 4,
        "refi": 2000,
        "latency": 90,
        "rcd": 20,
        "cl": 20,
    },
    "l1": {"latency": 30},
    "l2": {"latency": 100},
    "interconnect": {"latency": 20},
    "address_map": {"channels": 8, "slices_per_channel": 2},
    "clock": {"core_mhz": 1000.0, "interconnect_mhz": 1000.0, "l2_mhz": 1000.0, "dram_mhz": 500.0},
}


class DeadlockError(RuntimeError):
    """Same as the engine's."""


def cache_table(**rows: dict[str, int]) -> dict[str, dict[str, int]]:
    return {kind: {**dict.fromkeys(OUTCOMES, 0), **rows.get(kind, {})} for kind in ALL_KINDS}


def finished_launch(
    launch_id: int, start: int = 0, ctas: int = 4, interval: int = 0, **changes: Any
) -> dict[str, Any]:
    """The engine's report on one launch; `changes` replaces entries, or counters by name."""
    cycles = LATENCY + ctas * CTA_CYCLES
    n = ctas * INSTRUCTIONS
    counters = dict.fromkeys(COUNTERS, 0) | {
        "sm_active_cycles": 4 * ctas * CTA_CYCLES,
        "active_warp_cycles": 16 * ctas * CTA_CYCLES,
        "ctas": ctas,
        "warps": 8 * ctas,
        "warp_instructions": n,
        "thread_instructions": 30 * n,
        "global_load_requests": 100 * ctas,
        "global_load_sectors": 400 * ctas,
        "global_store_requests": 50 * ctas,
        "global_store_sectors": 200 * ctas,
        "dram_reads": 300 * ctas,
        "dram_writes": 100 * ctas,
        "dram_activates": 40 * ctas,
        "dram_bus_cycles": 400 * ctas,
        "dram_pending_cycles": 1600 * ctas,
    }
    counters |= {k: v for k, v in changes.items() if k in counters}
    scheduler_cycles = 4 * ctas * CTA_CYCLES
    timeline = None
    if interval:
        ends = list(range(start + interval, start + cycles + 1, interval))
        timeline = {
            "interval": interval,
            "cycle": ends,
            **{
                name: [100 + i % 7 for i in range(len(ends))]
                for name in ("warp_instructions", "thread_instructions", "active_warps")
            },
            "ctas": [1] * len(ends),
            "ctas_finished": [1] * len(ends),
            "finished_instructions": [100 + i % 7 for i in range(len(ends))],
            "l1_accesses": [40] * len(ends),
            "l1_hits": [10] * len(ends),
            "l2_accesses": [30] * len(ends),
            "l2_hits": [i % 30 for i in range(len(ends))],
            **{
                name: [[(i + c) % 9 for c in range(8)] for i in range(len(ends))]
                for name in ("dram_reads", "dram_writes", "dram_bus_cycles", "dram_pending_cycles")
            },
            "stalls": {state: [10 * i for i in range(len(ends))] for state in STATES},
            "warp_stalls": {state: [20 * i for i in range(len(ends))] for state in STATES},
            "dram_banks": {
                name: array("I", column).tobytes()
                for name, column in {
                    "interval": range(len(ends)),
                    "channel": [i % 8 for i in range(len(ends))],
                    "bank": [i % 4 for i in range(len(ends))],
                    "bus_cycles": [i % 9 for i in range(len(ends))],
                    "pending_cycles": [i % 9 for i in range(len(ends))],
                }.items()
            },
            "instructions": {
                name: array("I", column).tobytes()
                for name, column in {
                    "interval": range(len(ends)),
                    "instruction": [i % 3 for i in range(len(ends))],
                    "issued": [10 * i for i in range(len(ends))],
                    "waiting": [i % 5 for i in range(len(ends))],
                }.items()
            },
        }
    launch = {
        "id": launch_id,
        "stream": 0,
        "start_cycle": start,
        "end_cycle": start + cycles,
        "launch_latency": LATENCY,
        "occupancy_limit_ctas": 8,
        "occupancy_limited_by": "warps",
        "l1_bytes": 98304,
        "shared_carve_out_bytes": 32768,
        "clock_khz": 1_000_000,
        "counters": counters,
        "l1": cache_table(global_read={"hit": 100 * ctas, "miss": 200 * ctas, "hit_reserved": 100 * ctas}),
        "l2": cache_table(
            global_read={"hit": 60 * ctas, "miss": 240 * ctas, "reservation_fail": 7},
            global_write={"hit": 150 * ctas, "sector_miss": 50 * ctas},
        ),
        "stalls": {
            "selected": [n // 4] * 4,
            "long_scoreboard": [scheduler_cycles // 2] * 4,
            "wait": [scheduler_cycles // 2 - n // 4] * 4,
        },
        "warp_stalls": dict.fromkeys(STATES, 1000 * ctas) | {"selected": n},
        "pc": {
            "pc": [0x0, 0x10, 0x20],
            "opcode": ["LDG.E", "FFMA", "EXIT"],
            "source_line": [12, 13, 0],
            "text": ["LDG.E R4, R2", "FFMA R5, R4, R4, R5", "EXIT"],
            "issued": [n // 2, n // 4, n // 4],
            "threads": [15 * n, 8 * n, 7 * n],
            "sample_interval": 16,
            "stalled": {"long_scoreboard": [10, 900, 0], "wait": [5, 5, 20]},
        },
        "timeline": timeline,
        "spread": {
            "sm": {
                "warp_instructions": [n // 2, n // 4, n // 4, 0],
                "active_cycles": [part * ctas * CTA_CYCLES for part in (2, 1, 1, 0)],
                "active_warp_cycles": [part * ctas * CTA_CYCLES for part in (8, 4, 4, 0)],
            },
            "l2_slice": {"lookups": [500 * ctas] + [0] * 15, "hits": [210 * ctas] + [0] * 15},
        },
        "warnings": [],
    }
    return launch | {k: v for k, v in changes.items() if k not in counters}


@dataclass(frozen=True)
class FakeCode:
    """The engine's LaunchCode."""

    opcodes: tuple[str, ...]

    def parts(self, numbers: bytes) -> dict[str, Any]:
        parts: dict[str, Any] = pickle.loads(numbers)
        return parts


def packed(launch: dict[str, Any]) -> dict[str, Any]:
    """The report of `finished_launch` as the engine gives it, its counts packed."""
    raw = dict(launch)
    raw["engine"] = raw.pop("counters")
    parts = {name: raw.pop(name) for name in PACKED}
    code = FakeCode(tuple(parts["pc"].get("opcode", ())))
    return {**raw, "code": code, "numbers": pickle.dumps(parts)}


def fake_launch(ctas: int = 4, **changes: Any) -> Any:
    """A LaunchResult of `finished_launch`."""
    from simt.result import Machine
    from simt.run.facts import Facts, launch_result

    facts = Facts(0, 1, "kernel", (ctas, 1, 1), (256, 1, 1), 0, 32, 70)
    raw: Any = packed(finished_launch(1, ctas=ctas, **changes))
    return launch_result(raw, facts, Machine.from_spec(SPEC))


@dataclass
class FakeGpu:
    """The engine's Gpu: run() advances by exactly the given number of cycles, or to the end of the work."""

    spec: dict[str, Any]
    threads: int = 1
    window: int = 0
    timeline_interval: int = 0
    cycle: int = 0
    copies: list[tuple[int, int]] = field(default_factory=list)
    before_run: Any = None  # called with the Gpu before each slice
    deadlock_at: int | None = None

    def __post_init__(self) -> None:
        self._queue: list[tuple[int, int, int]] = []  # id, CTAs, end cycle
        self._reported = 0

    def copy_from_host(self, address: int, nbytes: int) -> None:
        self.copies.append((address, nbytes))

    def launch(
        self,
        source: int,
        launch_id: int,
        after: list[int] | None = None,
        controller: object = None,
        window: object = None,
    ) -> None:
        assert controller is None and not after and window is None
        start = self._queue[-1][2] if self._queue else 0
        self._queue.append((launch_id, source, start + LATENCY + source * CTA_CYCLES))

    def run(self, max_cycles: int, until: Sequence[int] = (), seconds: float = math.inf) -> bool:
        assert max_cycles > 0 and not until
        max_cycles = min(max_cycles, CALL_CYCLES if seconds < math.inf else max_cycles)
        if self.before_run:
            self.before_run(self)
        if self.deadlock_at is not None and self.cycle + max_cycles >= self.deadlock_at:
            self.cycle = self.deadlock_at
            raise DeadlockError("warp 3 of CTA 0 waits for barrier 1")
        end = self._queue[-1][2] if self._queue else 0
        self.cycle = min(self.cycle + max_cycles, end)
        return self.cycle == end

    def describe_work(self) -> str:
        return ""

    def finished_transfers(self) -> list[tuple[int, int, int]]:
        return []

    def _done(self) -> int:
        return sum(end <= self.cycle for _, _, end in self._queue)

    def progress(self) -> dict[str, Any]:
        done = self._done()
        return {
            "cycle": self.cycle,
            "warp_instructions": sum(ctas * INSTRUCTIONS for _, ctas, _ in self._queue[:done]),
            "ctas_done": sum(ctas for _, ctas, _ in self._queue[:done]),
            "ctas_total": sum(ctas for _, ctas, _ in self._queue),
            "launches_done": done,
            "running": [i for i, _, _ in self._queue[done : done + 1]],
        }

    def finished(self) -> list[dict[str, Any]]:
        fresh = self._queue[self._reported : self._done()]
        self._reported = self._done()
        return [
            packed(finished_launch(i, end - LATENCY - ctas * CTA_CYCLES, ctas, self.timeline_interval))
            for i, ctas, end in fresh
        ]


@dataclass(frozen=True)
class Copy:
    address: int
    bytes: int


@dataclass(frozen=True)
class Kernel:
    id: int
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int] = (256, 1, 1)
    shared_bytes: int = 0
    registers: int = 32
    sm_version: int = 70
    stream: int = 0
    path: Path = Path(__file__)

    @property
    def digest(self) -> str:
        return f"{self.id}-{self.grid}"

    @property
    def counts(self) -> dict[str, int]:
        return {"ctas": self.grid[0], "instructions": self.grid[0] * INSTRUCTIONS}

    def stored(self, progress: Any = None) -> None:
        if progress:
            progress(100)

    def source(self, special: frozenset[str] = frozenset()) -> int:
        return self.grid[0]


@dataclass
class Trace:
    commands: list[Any]
    warnings: tuple[str, ...] = ()

    @property
    def kernels(self) -> list[Kernel]:
        return [command for command in self.commands if isinstance(command, Kernel)]


COMMANDS = [
    Copy(0x1000, 4096),
    Kernel(1, "vecadd", (4, 1, 1)),
    Kernel(2, "gemm_128x64", (8, 1, 1)),
    Copy(0x2000, 64),
    Kernel(3, "gemm_64x64", (2, 1, 1)),
    Kernel(4, "reduce(float*, int)", (1, 1, 1)),
]


@contextmanager
def installed(commands: list[Any] | None = None) -> Iterator[list[FakeGpu]]:
    """Replaces simt._engine, simt.trace and simt.spec by fakes; returns the Gpus that simulate makes."""
    import simt
    import simt._engine  # or it would be loaded with the fake and later again, which is impossible
    import simt.control.launch  # bound to the real one
    import simt.policy.python
    import simt.run.session

    gpus: list[FakeGpu] = []
    engine: Any = types.ModuleType("simt._engine")

    def make_gpu(*args: Any, **kwargs: Any) -> FakeGpu:
        gpu = FakeGpu(*args, **kwargs)
        gpu.before_run, gpu.deadlock_at = engine.before_run, engine.deadlock_at
        gpus.append(gpu)
        return gpu

    engine.Gpu, engine.DeadlockError = make_gpu, DeadlockError
    engine.PolicyFault = type("PolicyFault", (Exception,), {})
    engine.functional = types.SimpleNamespace(ProgramFault=type("ProgramFault", (Exception,), {}))
    engine.before_run, engine.deadlock_at = None, None
    trace: Any = types.ModuleType("simt.trace")
    trace.Copy, trace.Kernel = Copy, Kernel
    trace.open_trace = lambda path: Trace(list(COMMANDS if commands is None else commands))
    spec: Any = types.ModuleType("simt.spec")

    class Spec:
        def __init__(self, overrides: dict[str, Any]) -> None:
            self.name = SPEC["name"]
            self.hash = f"beef{sorted(overrides.items())}"
            self.special_opcodes: frozenset[str] = frozenset()

        def native(self) -> dict[str, Any]:
            return SPEC

    spec.load_spec = lambda name, overrides: Spec(overrides)
    spec.outside_policies = lambda spec: {}
    names = {"_engine": engine, "trace": trace, "spec": spec}
    before = {name: (sys.modules.get(f"simt.{name}"), getattr(simt, name, None)) for name in names}
    try:
        for name, module in names.items():
            sys.modules[f"simt.{name}"] = module
            setattr(simt, name, module)
        yield gpus
    finally:
        for name, (module, attribute) in before.items():
            if module is None:
                del sys.modules[f"simt.{name}"]
                delattr(simt, name)
            else:
                sys.modules[f"simt.{name}"] = module
                setattr(simt, name, attribute)
