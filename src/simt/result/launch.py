"""One finished launch, and the facts about the machine that its ratios need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from simt.errors import PowerError
from simt.result import timeline
from simt.result.counters import Value, evaluate
from simt.result.sampled import Sampled
from simt.result.timeline import DramActivity, InstructionActivity, Sample

if TYPE_CHECKING:
    from simt.power import Energies, LaunchEnergy

CacheTable = dict[str, dict[str, int]]
# Operations of the tensor instruction that defines a specification's interval: FP16 m16n8k16 or, on Volta, a
# step of HMMA.884 with FP32 accumulators.
TENSOR_FLOPS, STEP_884_FLOPS = 4096, 512


@dataclass(frozen=True)
class Machine:
    """The facts of the GPU specification that ratios and reports need. Clocks are in kHz."""

    name: str
    sm_count: int
    sub_cores: int
    issue_width: int
    max_warps: int
    l2_slices: int
    dram_channels: int
    core_khz: int
    l2_khz: int
    dram_khz: int
    # Peak rates of its units and buses per core cycle; 0: unknown.
    fp32_flops_per_cycle: float = 0.0
    tensor_flops_per_cycle: float = 0.0
    dram_bytes_per_cycle: float = 0.0
    dram_banks: int = 0  # per channel; 0: unknown
    dram_refresh_cycles: int = 0  # DRAM command cycles in which a channel is refreshed once; 0: no refresh

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Machine:
        """Makes the facts from the engine's dictionary (names as in engine/timing/spec_fields.hpp)."""
        addresses, sm, dram = spec["address_map"], spec["sm"], spec["dram"]
        core, l2, memory = (round(1000 * spec["clock"][f"{part}_mhz"]) for part in ("core", "l2", "dram"))
        fp32, tensor = sm["units"]["fp32"], sm["units"]["tensor"]
        bus = addresses["channels"] * dram["bus_bytes"] * dram["data_command_ratio"]
        return cls(
            name=spec["name"],
            sm_count=sm["count"],
            sub_cores=sm["sub_cores"],
            issue_width=sm["scheduler"]["issue_width"],
            max_warps=sm["max_warps"],
            l2_slices=addresses["channels"] * addresses["slices_per_channel"],
            dram_channels=addresses["channels"],
            core_khz=core,
            l2_khz=l2,
            dram_khz=memory,
            fp32_flops_per_cycle=sm["count"] * _rate(fp32) * 2 * sm["warp_size"],
            tensor_flops_per_cycle=sm["count"]
            * _rate(tensor)
            * (STEP_884_FLOPS if 70 <= spec["sm_version"] < 75 else TENSOR_FLOPS),
            dram_bytes_per_cycle=bus * memory / core,
            dram_banks=dram["banks"],
            dram_refresh_cycles=dram["refi"],
        )


def _rate(unit: Mapping[str, int]) -> float:
    """Warp instructions that an SM's units of a kind begin per cycle."""
    return unit["count"] / max(1, unit["initiation_interval"])


@dataclass(frozen=True, repr=False)
class LaunchResult:
    """One finished launch: the engine's counts, and (as `counters`) what follows from them."""

    index: int  # position among the kernels of the input, from 0
    id: int
    name: str
    stream: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    registers: int
    sm_version: int
    start_cycle: int
    end_cycle: int
    launch_latency: int
    clock_khz: int
    occupancy_limit_ctas: int
    occupancy_limited_by: str
    l1_bytes: int
    shared_carve_out_bytes: int
    engine: dict[str, int]  # engine/stats/counters.hpp
    l1: CacheTable  # sector lookups by kind and outcome
    l2: CacheTable
    stalls: dict[str, list[int]]  # scheduler cycles by reason and scheduler; "selected": one issued
    warp_stalls: dict[str, int]  # warp-cycles by state
    pc: dict[str, Any]  # per static instruction: executions, and sampled warp states
    timeline: dict[str, Any] | None
    spread: dict[str, dict[str, list[int]]] = field(default_factory=dict)  # by SM, by L2 slice
    annotation: str = ""  # what the program calls this work
    warnings: tuple[str, ...] = ()
    sampled: Sampled | None = None  # if a controller decided how much of it to simulate
    machine: Machine | None = field(default=None, compare=False)
    energies: Energies | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        from simt.result import launch_table

        return launch_table.launch_text(self)

    @property
    def cycles(self) -> int:
        """Core cycles from launch to end, launch latency included."""
        return self.end_cycle - self.start_cycle

    @property
    def interval(self) -> tuple[int, int]:
        """Core cycles at which the launch began and ended."""
        return self.start_cycle, self.end_cycle

    @property
    def seconds(self) -> float:
        return self.cycles / (1000 * self.clock_khz) if self.clock_khz else math.nan

    @property
    def warp_instructions(self) -> int:
        return self.engine["warp_instructions"]

    @property
    def thread_instructions(self) -> int:
        return self.engine["thread_instructions"]

    @cached_property
    def counters(self) -> dict[str, Value]:
        """Every counter of docs/counters.md by name. A ratio without a denominator is None."""
        names: dict[str, float] = {
            "cycles": self.cycles,
            "launch_latency": self.launch_latency,
            "clock_khz": self.clock_khz,
            "grid_ctas": math.prod(self.grid),
            "block_threads": math.prod(self.block),
            "registers": self.registers,
            "shared_bytes": self.shared_bytes,
        }
        if self.occupancy_limited_by != "grid":  # otherwise it is unknown how many would fit
            names["occupancy_limit_ctas"] = self.occupancy_limit_ctas
        if self.energies is not None:
            names["joules"] = self.energy.joules
        return evaluate_counters(
            names, self.machine, self.cycles, self.engine, self.l1, self.l2, self.stalls, self.warp_stalls
        )

    @cached_property
    def energy(self) -> LaunchEnergy:
        """Energy of this launch as if it had run alone, by the run's energies (`power=`) or those of its GPU.

        Raises PowerError if there are none.
        """
        from simt.power import LaunchEnergy, load_energies

        if self.machine is None:
            raise PowerError("this launch does not say of which GPU it is; give its Result's `energy`")
        return LaunchEnergy(self, self.energies or load_energies(self.machine.name))

    def samples(self) -> list[Sample]:
        """The timeline as rates; empty if there is none."""
        return timeline.samples(self)

    def dram_activity(
        self, by: Literal["channel", "bank"] = "channel", most: int | None = None
    ) -> DramActivity | None:
        """Utilisation and efficiency of each DRAM channel or bank over time.

        most: merges neighbouring intervals until there are at most that many.

        None without a timeline, or for banks in one of an earlier version.
        """
        return timeline.dram_activity(self, by, most)

    def instruction_activity(self, most: int | None = None) -> InstructionActivity | None:
        """How often each instruction was issued, and warps were found waiting there, over time.

        most: merges neighbouring intervals until there are at most that many.

        None without a timeline, or for one of an earlier version.
        """
        return timeline.instruction_activity(self, most)

    def to_json(self, detail: bool = False) -> dict[str, Any]:
        """The launch as in the schema; `detail` adds the tables `pc`, `timeline` and `spread`."""
        out = {
            "index": self.index,
            "id": self.id,
            "name": self.name,
            "annotation": self.annotation,
            "stream": self.stream,
            "cycles": self.cycles,
            "launch_latency": self.launch_latency,
            "warp_instructions": self.warp_instructions,
            "thread_instructions": self.thread_instructions,
            "start_cycle": self.start_cycle,
            "end_cycle": self.end_cycle,
            "clock_khz": self.clock_khz,
            "grid": list(self.grid),
            "block": list(self.block),
            "shared_bytes": self.shared_bytes,
            "registers": self.registers,
            "sm_version": self.sm_version,
            "occupancy_limit_ctas": self.occupancy_limit_ctas,
            "occupancy_limited_by": self.occupancy_limited_by,
            "l1_bytes": self.l1_bytes,
            "shared_carve_out_bytes": self.shared_carve_out_bytes,
            "counters": without_nan(self.counters),
            "engine": without_nan(self.engine),
            "l1": {kind: without_nan(row) for kind, row in self.l1.items()},
            "l2": {kind: without_nan(row) for kind, row in self.l2.items()},
            "stalls": self.stalls,
            "warp_stalls": without_nan(self.warp_stalls),
            "warnings": list(self.warnings),
        }
        if self.sampled is not None:
            out["sampled"] = self.sampled.to_json()
        if detail:
            out["pc"] = self.pc
            out["timeline"] = timeline.to_json(self.timeline)
            out["spread"] = self.spread
        return out

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], machine: Machine, energies: Energies | None = None
    ) -> LaunchResult:
        derived = {"cycles", "warp_instructions", "thread_instructions", "counters"}
        values = {key: value for key, value in data.items() if key not in derived}
        values["grid"], values["block"] = tuple(data["grid"]), tuple(data["block"])
        values["warnings"] = tuple(data["warnings"])
        for name in ("engine", "warp_stalls"):
            values[name] = _with_nan(values[name])
        for name in ("l1", "l2"):
            values[name] = {kind: _with_nan(row) for kind, row in values[name].items()}
        if values.get("sampled") is not None:
            values["sampled"] = Sampled.from_json(values["sampled"])
        values.setdefault("pc", {})
        values["timeline"] = timeline.from_json(data.get("timeline"))
        values.setdefault("spread", {})
        return cls(**values, machine=machine, energies=energies)


def without_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces NaN, which JSON lacks, by null."""
    return {key: None if value != value else value for key, value in row.items()}


def _with_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: math.nan if value is None else value for key, value in row.items()}


def evaluate_counters(
    names: Mapping[str, Any],
    machine: Machine | None,
    cycles: int,
    engine: Mapping[str, int],
    l1: CacheTable,
    l2: CacheTable,
    stalls: Mapping[str, Sequence[int]],
    warp_stalls: Mapping[str, int],
) -> dict[str, Value]:
    """Every counter, from the engine's counters and the facts in `names` and `machine`."""
    values: dict[str, Any] = {**engine, **names}
    if stalls:
        values["issued"] = sum(stalls.get("selected", ()))
        values["scheduler_cycles"] = sum(map(sum, stalls.values()))
    if machine is not None:
        values.update({k: v for k, v in asdict(machine).items() if k != "name"})
        values["l2_cycles"] = cycles * machine.l2_khz / machine.core_khz
        values["dram_cycles"] = cycles * machine.dram_khz / machine.core_khz
    return evaluate(values, l1, l2, warp_stalls)
