"""One finished launch, and the facts about the machine that its ratios need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from msgspec import Meta

from simt.errors import PowerError
from simt.result import timeline
from simt.result.counters import Value, evaluate
from simt.result.detail import CounterRow, PcRecord, TimelineRecord
from simt.result.sampled import Sampled, SampledRecord
from simt.result.timeline import DramActivity, InstructionActivity, TimelineSample
from simt.written import Amount, Count, Small, WrittenAs, written

if TYPE_CHECKING:
    from simt._engine import LaunchCode
    from simt.power import Energies, LaunchEnergy
    from simt.result.listing import Lines, Origins
    from simt.result.stack import Part
    from simt.spec.native import NativeSpec, NativeUnit

MaybeNone: TypeAlias = Any
"""In `X | MaybeNone`: None only in a run that was asked for without it. Checkers let `launch.cycles` pass
without a test for None, as for the alias of this name in typeshed."""

CacheTable = dict[str, dict[str, int]]
_Extent = Annotated[int, Meta(ge=1, le=2**31)]


def tensor_flops(sm_version: int) -> float:
    """Operations of the tensor instruction that defines a specification's interval: FP16 m16n8k16 or, on
    Volta, a step of HMMA.884 with FP32 accumulators."""
    from simt.isa.opcodes import multiply_adds

    return 2 * multiply_adds("HMMA.884.F32.F32" if 70 <= sm_version < 75 else "HMMA.16816.F32")


@dataclass(frozen=True)
class Machine:
    """The facts of the GPU specification that ratios and reports need. Clocks are in kHz."""

    name: str
    sm_count: Annotated[int, Meta(ge=1, le=10**6)]
    sub_cores: Annotated[int, Meta(ge=1, le=10**4)]
    issue_width: Annotated[int, Meta(ge=1, le=10**4)]
    max_warps: Annotated[int, Meta(ge=1, le=10**6)]
    l2_slices: Annotated[int, Meta(ge=1, le=10**6)]
    dram_channels: Annotated[int, Meta(ge=1, le=10**6)]
    core_khz: Annotated[int, Meta(ge=1, le=10**9)]
    l2_khz: Annotated[int, Meta(ge=1, le=10**9)]
    dram_khz: Annotated[int, Meta(ge=1, le=10**9)]
    # Peak rates of its units and buses per core cycle.
    fp32_flops_per_cycle: Annotated[
        Amount,
        Meta(
            description="FP32 operations of all SMs per core cycle at most, a fused multiply-add being two; "
            "0: not known."
        ),
    ] = 0.0
    tensor_flops_per_cycle: Annotated[
        Amount, Meta(description="The same of tensor cores with dense FP16 and sums in FP32.")
    ] = 0.0
    tensor_fp16_sums_flops_per_cycle: Annotated[
        Amount,
        Meta(description="The same with sums in FP16, which GeForce takes at twice the rate; 0: not known."),
    ] = 0.0
    dram_bytes_per_cycle: Annotated[
        Amount,
        Meta(description="Bytes that the data buses move per core cycle at most; 0: not known."),
    ] = 0.0
    dram_banks: Annotated[int, Meta(ge=0, le=10**4, description="DRAM banks per channel; 0: not known.")] = 0
    dram_refresh_cycles: Annotated[
        Small,
        Meta(description="DRAM command cycles in which a channel is refreshed once; 0: no refresh."),
    ] = 0
    # Core cycles of a load that is alone.
    l1_latency: Annotated[Amount, Meta(description="Core cycles of a hit in the L1; 0: not known.")] = 0.0
    l2_latency: Annotated[
        Amount, Meta(description="Core cycles that a hit in the L2 takes beyond the L1; 0: not known.")
    ] = 0.0
    dram_latency: Annotated[
        Amount, Meta(description="Core cycles that DRAM takes beyond the L2; 0: not known.")
    ] = 0.0

    @classmethod
    def from_spec(cls, spec: NativeSpec) -> Machine:
        """Makes the facts from the engine's dictionary (names as in engine/timing/base/spec_fields.hpp)."""
        addresses, sm, dram, clock = spec["address_map"], spec["sm"], spec["dram"], spec["clock"]
        core, l2, memory = (
            round(1000 * mhz) for mhz in (clock["core_mhz"], clock["l2_mhz"], clock["dram_mhz"])
        )
        fp32, tensor = sm["units"]["fp32"], sm["units"]["tensor"]
        wires = 2 * (spec["interconnect"]["latency"] + 2) / clock["interconnect_mhz"]  # two hops each way
        row = (dram["rcd"] + dram["cl"]) / clock["dram_mhz"]
        bus = addresses["channels"] * dram["bus_bytes"] * dram["data_command_ratio"]
        products = sm["count"] * _rate(tensor) * tensor_flops(spec["sm_version"])
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
            tensor_flops_per_cycle=products,
            tensor_fp16_sums_flops_per_cycle=products * (2 if sm["half_rate_fp32_accumulation"] else 1),
            dram_bytes_per_cycle=bus * memory / core,
            dram_banks=dram["banks"],
            dram_refresh_cycles=dram["refi"],
            l1_latency=float(spec["l1"]["latency"]),
            l2_latency=clock["core_mhz"] * (wires + spec["l2"]["latency"] / clock["l2_mhz"]),
            dram_latency=clock["core_mhz"] * (dram["latency"] / clock["l2_mhz"] + row),
        )


def _rate(unit: NativeUnit) -> float:
    """Warp instructions that an SM's units of a kind begin per cycle."""
    return unit["count"] / max(1, unit["initiation_interval"])


class PackedCounts(NamedTuple):
    """The counts of a launch as the engine packs them.

    code: the instructions of its kernel. origins: where these come from, if that is known.
    """

    numbers: bytes
    code: LaunchCode
    origins: Origins | None

    def parts(self) -> dict[str, Any]:
        """The fields that they hold, by name: those of PACKED."""
        from simt.result.listing import shared

        parts = self.code.parts(self.numbers)
        pc = parts["pc"] if self.origins is None else self.origins.added_to(parts["pc"])
        return {**parts, "pc": shared(pc)}


PACKED = ("engine", "l1", "l2", "stalls", "warp_stalls", "pc", "spread")
"""Fields of a launch that are unpacked together, when one is asked for."""


@dataclass(frozen=True, repr=False, kw_only=True)
class LaunchResult:
    """One finished launch: the engine's counts, and (as `counters`) what follows from them."""

    index: Annotated[Count, Meta(description="Position among the kernels of the input, from 0.")]
    id: Annotated[int, Meta(ge=0, le=2**63 - 1, description="Launch id of the input.")]
    name: Annotated[str, Meta(description="Kernel name.")]
    annotation: Annotated[
        str,
        Meta(
            description="What the program calls this work: a range of GPU.annotate, or an operator and its "
            "module."
        ),
    ] = ""
    stream: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    launch_latency: Annotated[
        Count, Meta(description="Core cycles between launch and the start of the first CTA.")
    ]
    start_cycle: Count
    end_cycle: Count
    clock_khz: Annotated[int, Meta(ge=0, le=10**9, description="Core clock.")]
    grid: Annotated[
        tuple[int, int, int],
        WrittenAs(tuple[_Extent, _Extent, _Extent]),
        Meta(description="CTAs in x, y, z."),
    ]
    block: Annotated[
        tuple[int, int, int],
        WrittenAs(tuple[_Extent, _Extent, _Extent]),
        Meta(description="Threads of a CTA in x, y, z."),
    ]
    shared_bytes: Annotated[Count, Meta(description="Shared memory per CTA.")]
    registers: Annotated[Small, Meta(description="Registers per thread.")]
    sm_version: Small
    occupancy_limit_ctas: Annotated[Count, Meta(description="CTAs that fit into an SM at once.")]
    occupancy_limited_by: Annotated[str, Meta(description="What limits them.")]
    l1_bytes: Annotated[Count, Meta(description="L1 data cache of each SM during the launch.")]
    shared_carve_out_bytes: Annotated[Count, Meta(description="Shared memory of each SM during the launch.")]
    engine: Annotated[
        dict[str, int],
        WrittenAs(CounterRow),
        Meta(
            description="The engine's own counters (engine/stats/counters.hpp). Null where a sampled launch "
            "has no projection of it."
        ),
    ]
    l1: Annotated[
        CacheTable,
        WrittenAs(dict[str, CounterRow]),
        Meta(description="Sector look-ups in the L1 data caches by kind of access and outcome."),
    ]
    l2: Annotated[
        CacheTable,
        WrittenAs(dict[str, CounterRow]),
        Meta(description="Sector look-ups in the L2 by kind of access and outcome."),
    ]
    stalls: Annotated[
        dict[str, list[int]],
        WrittenAs(dict[str, list[Count]]),
        Meta(
            description="Scheduler cycles, summed over SMs, by the state of their warps (`selected`: one "
            "issued), one number per scheduler of an SM."
        ),
    ]
    warp_stalls: Annotated[
        dict[str, int], WrittenAs(CounterRow), Meta(description="Warp-cycles by the state of the warp.")
    ]
    warnings: tuple[str, ...] = ()
    sampled: Annotated[
        Sampled | MaybeNone,
        WrittenAs(SampledRecord | None),
        Meta(
            description="What of the launch was simulated; only where a controller decided. Then other "
            "values are projected totals."
        ),
    ] = None
    pc: Annotated[
        dict[str, Any],
        Meta(
            description="Per static instruction: executions, and how often a warp was found in each state "
            "before it. Only with detail.",
            extra_json_schema={"anyOf": [{"$ref": f"#/$defs/{PcRecord.__name__}"}, {"maxProperties": 0}]},
        ),
    ] = field(default_factory=dict)
    timeline: Annotated[
        dict[str, Any] | None,
        WrittenAs(TimelineRecord | None),
        Meta(
            description="Per interval; the DRAM columns have a list per interval with a number per channel. "
            "Only with detail."
        ),
    ] = None
    spread: Annotated[
        dict[str, dict[str, list[int]]],
        WrittenAs(dict[Literal["sm", "l2_slice"], dict[str, list[Count]]]),
        Meta(description="By unit (sm, l2_slice): columns with a number for each of them. Only with detail."),
    ] = field(default_factory=dict)
    machine: Machine | None = field(default=None, compare=False)
    energies: Energies | None = field(default=None, compare=False)

    @classmethod
    def of_packed(cls, packed: PackedCounts, known: dict[str, Any]) -> LaunchResult:
        """A launch whose counts are unpacked when one of them is asked for. known: all other fields."""
        launch = cls.__new__(cls)
        launch.__dict__.update(known, _packed=packed)
        return launch

    @property
    def packed(self) -> PackedCounts | None:
        """The counts as the engine packed them; None if they were never packed."""
        found: PackedCounts | None = self.__dict__.get("_packed")
        return found

    if not TYPE_CHECKING:  # it would accept any name

        def __getattr__(self, name: str) -> Any:
            if name not in PACKED or self.packed is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.__dict__.update(self.packed.parts())
            return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        from simt.result import launch_table

        return launch_table.launch_text(self)

    @property
    def cycles(self) -> Count:
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
    def warp_instructions(self) -> Count:
        return self.engine["warp_instructions"]

    @property
    def thread_instructions(self) -> Count:
        return self.engine["thread_instructions"]

    @cached_property
    def counters(self) -> Annotated[dict[str, Value], WrittenAs(dict[str, float | None])]:
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

    def lines(self, by: Literal["source", "instruction"] | None = None) -> Lines:
        """Where its warps waited, those lines first at which they did so longest; `print` shows a table.

        by: lines of source, or instructions; None: lines where they are known.
        """
        from simt.result.listing import lines_of

        return lines_of(self, by)

    @property
    def stack(self) -> tuple[Part, ...]:
        """Where its time goes: parts whose shares add up to 1, largest first (docs/explain.md)."""
        from simt.result.stack import stack

        return stack(self)

    def _repr_html_(self) -> str:
        from simt.result import launch_table

        return launch_table.launch_html(self)

    def samples(self) -> list[TimelineSample]:
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

    def to_json(self, detail: bool = False, derived: bool = True) -> dict[str, Any]:
        """The launch as in the schema; `detail` adds the tables `pc`, `timeline` and `spread`. derived: False
        leaves out what follows from the rest, which takes most of the time."""
        without = _DETAILS if derived else (*_DETAILS, *DERIVED)
        out = {name: getattr(self, name) for name in LaunchRecord.__struct_fields__ if name not in without}
        for name in ("counters", "engine", "warp_stalls"):
            if name in out:
                out[name] = without_nan(out[name])
        for name in ("l1", "l2"):
            out[name] = {kind: without_nan(row) for kind, row in out[name].items()}
        for name in ("grid", "block", "warnings"):
            out[name] = list(out[name])
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
        values = {key: value for key, value in data.items() if key not in ("cycles", *DERIVED)}
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


LaunchRecord = written(
    LaunchResult,
    optional=("annotation", "sampled", "pc", "timeline", "spread"),
    derived={
        "launch_latency": ("cycles",),
        "start_cycle": ("warp_instructions", "thread_instructions"),
        "engine": ("counters",),
    },
    without=("machine", "energies"),
)
"""A launch as it is written."""
_DETAILS = ("sampled", "pc", "timeline", "spread")
DERIVED = ("counters", "warp_instructions", "thread_instructions")
"""What a saved launch leaves out, for it follows from the rest."""
MachineRecord = written(
    Machine,
    optional=[each.name for each in fields(Machine) if each.default is not MISSING],
    forbid_unknown_fields=True,
)


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
        values.update({k: v for k, v in vars(machine).items() if k != "name"})
        values["l2_cycles"] = cycles * machine.l2_khz / machine.core_khz
        values["dram_cycles"] = cycles * machine.dram_khz / machine.core_khz
    return evaluate(values, l1, l2, warp_stalls)
