"""Energy and power of launches and programs, by component, instruction class and source line.

E = sum over events of count * energy per event, plus time * power of what is on: the form of AccelWattch
(Kandiah et al., MICRO'21, section 3) with instruction energies as measured (Arafa et al., CF'20).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simt.isa.opcodes import access_bytes, shared_memory
from simt.power.energies import Energies
from simt.power.events import events
from simt.power.operating_point import OperatingPoint
from simt.result.elapsed import covered
from simt.result.launch import LaunchResult
from simt.result.listing import Line, instructions, source_lines

if TYPE_CHECKING:
    import polars as pl

    from simt.result.result import Result

Floats = NDArray[np.float64]
NORMAL_95 = 1.96
TENSOR = "tensor."
LEVELS = ("L1", "network", "L2", "DRAM")
_UNITS = {
    "integer units": "int_add int_logic int_shift int_mad int_mul_wide int_compare int_bits move convert "
    "vote",
    "FP32 units": "fp32_add fp32_mul fp32_fma fp32_compare",
    "FP16 units": "fp16_add fp16_mul fp16_fma",
    "FP64 units": "fp64_add fp64_mul fp64_fma fp64_compare",
    "special-function units": "sfu",
    "load/store units": "load_store shuffle",
    "texture units": "texture",
    "control": "branch barrier uniform nop",
}
_COMPONENT_OF = {
    **{f"instructions.{key}": unit for unit, keys in _UNITS.items() for key in keys.split()},
    "memory.shared_pass": "shared memory",
    "memory.l1_sector_read": "L1",
    "memory.l1_sector_write": "L1",
    "memory.constant_access": "constant caches",
    "memory.l2_sector_read": "L2",
    "memory.l2_sector_write": "L2",
    "memory.network_sector": "network",
    "memory.dram_sector_read": "DRAM",
    "memory.dram_sector_write": "DRAM",
    "memory.dram_activate": "DRAM",
    "memory.dram_refresh": "DRAM",
    "power.sm_active": "active SMs",
    "power.sub_core_active": "active SMs",
    "power.sm_idle": "idle SMs",
    "power.chip_idle": "chip",
    "power.board": "board",
}
COMPONENTS = (
    "front end",
    "register file",
    *_UNITS,
    "tensor cores",
    *dict.fromkeys(x for key, x in _COMPONENT_OF.items() if not key.startswith("instructions.")),
)
"""Names of the components, in the order of tables."""


class Energy:
    """Energy over some time, and where it went.

    seconds: the time. components: J by name, see `COMPONENTS`. classes: J by instruction class, within the
    SM's pipelines. uncertain: J that would be wrong if every value of a source were off by its standard
    deviation, by source. missing: energies whose events are unknown because a controller could not project
    them; they count as 0.
    """

    def __init__(
        self,
        seconds: float,
        components: Mapping[str, float],
        classes: Mapping[str, float],
        uncertain: Mapping[str, float],
        missing: tuple[str, ...],
    ) -> None:
        self.seconds = seconds
        self.components = dict(components)
        self.classes = dict(classes)
        self.uncertain = dict(uncertain)
        self.missing = missing

    @property
    def joules(self) -> float:
        return sum(self.components.values())

    @property
    def watts(self) -> float:
        """Average power."""
        return self.joules / self.seconds if self.seconds else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation of `joules`: values of one source are taken to be wrong together, those of
        different sources independently. It covers the stated uncertainties of the values, not errors of the
        simulated counts or of the model's form."""
        return math.sqrt(sum(x * x for x in self.uncertain.values()))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of `joules`, from `deviation`."""
        return max(0.0, self.joules - NORMAL_95 * self.deviation), self.joules + NORMAL_95 * self.deviation

    @property
    def energy_delay(self) -> float:
        """Energy-delay product in J s."""
        return self.joules * self.seconds

    @property
    def energy_delay_squared(self) -> float:
        """Energy times the square of the delay, in J s^2."""
        return self.joules * self.seconds**2

    def table(self) -> pl.DataFrame:
        """By component: `component`, `joules`, `watts` (average) and `share`. Those without energy are left
        out."""
        import polars as pl

        rows = [(name, self.components[name]) for name in COMPONENTS if self.components[name]]
        return pl.DataFrame(
            [(name, j, j / self.seconds, j / self.joules) for name, j in rows],
            schema={"component": pl.String, "joules": pl.Float64, "watts": pl.Float64, "share": pl.Float64},
            orient="row",
        )

    def class_table(self) -> pl.DataFrame:
        """By instruction class, largest first: `class`, `joules` in the SM's pipelines, and `share` of
        all."""
        import polars as pl

        rows = sorted(self.classes.items(), key=lambda row: (-row[1], row[0]))
        schema = {"class": pl.String, "joules": pl.Float64, "share": pl.Float64}
        return pl.DataFrame([(k, j, j / self.joules) for k, j in rows], schema=schema, orient="row")


class LaunchEnergy(Energy):
    """Energy of one launch.

    share: the part of its time in which the GPU's constant power counts for it, below 1 if other launches ran
    at the same time. temperature: of the chip in degrees Celsius; None for that of the energies.

    Raises PowerError.
    """

    def __init__(
        self,
        launch: LaunchResult,
        energies: Energies,
        *,
        share: float = 1.0,
        temperature: float | None = None,
    ) -> None:
        self.launch = launch
        self.energies = energies
        self._factors = OperatingPoint.of(energies, launch.clock_khz, temperature).factors(energies)
        self.events = found = events(launch, energies, share)
        uncertain: dict[str, float] = {}
        for key, n in found.counts.items():
            if n:
                each = energies.values[key]
                wrong = n * self.value(key) * each.uncertainty
                uncertain[each.source] = uncertain.get(each.source, 0.0) + wrong
        super().__init__(found.seconds * share, self._components(), self._classes(), uncertain, found.missing)

    def value(self, key: str) -> float:
        """J per event, or W, at the launch's clock, voltage and temperature."""
        return self.energies[key] * self._factors[key]

    @cached_property
    def pipelines(self) -> dict[str, Floats]:
        """J in the SM's pipelines by component and instruction: an element per row of `pc`."""
        found = self.events.instructions
        front = found.issued * self.value("front_end.issue")
        registers = found.reads * self.value("registers.read") + found.writes * self.value("registers.write")
        by_component = {"front end": front, "register file": registers}
        for key, rows in found.rows.items():
            if key.startswith(TENSOR):
                # Known as a whole: issue and registers take no more than that.
                whole, around = found.multiply_adds[rows] * self.value(key), front[rows] + registers[rows]
                share = np.minimum(1.0, np.divide(whole, around, where=around > 0, out=np.ones_like(whole)))
                front[rows] *= share
                registers[rows] *= share
                unit = whole - around * share
            else:
                unit = found.threads[rows] * self.energies.unit_energy(key) * self._factors[key]
            by_component.setdefault(_component(key), np.zeros(len(found.keys)))[rows] = unit
        return by_component

    @cached_property
    def _in_pipelines(self) -> Floats:
        return np.asarray(sum(self.pipelines.values()))

    def _components(self) -> dict[str, float]:
        found = dict.fromkeys(COMPONENTS, 0.0)
        found |= {name: float(rows.sum()) for name, rows in self.pipelines.items()}
        for key, n in self.events.counts.items():
            if n and key.startswith(("memory.", "power.")):
                found[_component(key)] += n * self.value(key)
        return found

    def _classes(self) -> dict[str, float]:
        return {
            key.removeprefix("instructions.").replace(".", " "): joules
            for key, joules in self.events.instructions.by_key(self._in_pipelines).items()
        }

    @cached_property
    def by_instruction(self) -> Floats:
        """J of each instruction with its share of the memory beyond the pipelines, without static and
        constant power; an element per row of `pc`. Shared memory is divided by executions, constant caches
        likewise, the L1, network, L2 and DRAM by bytes."""
        found = self.events.instructions
        opcodes = self.launch.pc.get("opcode", [])
        memory = np.zeros(len(opcodes), bool)
        memory[found.rows.get("instructions.load_store", [])] = True
        shared = np.array([shared_memory(x) for x in opcodes], bool)
        moved = found.threads * np.array([access_bytes(x) for x in opcodes], float)
        levels = sum(self.components[x] for x in LEVELS)
        return (
            self._in_pipelines
            + levels * _shares(moved * (memory & ~shared))
            + self.components["shared memory"] * _shares(found.issued * shared)
            + self.components["constant caches"] * _shares(found.issued)
        )

    @cached_property
    def static_by_instruction(self) -> Floats:
        """The rest of the launch's energy, divided by the time that warps were found at each instruction."""
        pc = self.launch.pc
        samples = np.array([*pc.get("stalled", {}).values()], float).sum(axis=0)
        weights = samples if samples.any() else self.events.instructions.issued
        return _shares(weights) * float(self.joules - self.by_instruction.sum())

    def lines(self) -> pl.DataFrame:
        """By source line: `file`, `line`, `text`, `dynamic` and `static` J (`by_instruction`,
        `static_by_instruction`), and their sum `joules`."""
        return self._lines(source_lines(self.launch), {"file": "String", "line": "Int64"})

    def instruction_table(self) -> pl.DataFrame:
        """By machine instruction: `pc`, `text`, `dynamic` and `static` J, and their sum `joules`."""
        return self._lines(instructions(self.launch), {"pc": "UInt64"})

    def _lines(self, lines: Iterable[Line], place: Mapping[str, str]) -> pl.DataFrame:
        import polars as pl

        dynamic, static = self.by_instruction, self.static_by_instruction
        rows = []
        for line in lines:
            a, b = (float(x[line.instructions].sum()) for x in (dynamic, static))
            rows.append((*line.place, line.text, a, b, a + b))
        schema = {name: getattr(pl, kind) for name, kind in place.items()} | {"text": pl.String}
        schema |= dict.fromkeys(("dynamic", "static", "joules"), pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")


class ProgramEnergy(Energy):
    """Energy of the launches of a Result, and of the idle GPU between them.

    launches: of each launch, in the Result's order. idle_seconds: time between the first and the last launch
    in which none ran; idle_events: seconds of each part that is on then. temperature: of the chip in degrees
    Celsius; None for that of the energies. projected: for a Result of a plan, the energy of all launches of
    the program.

    Raises PowerError.
    """

    def __init__(self, result: Result, energies: Energies, *, temperature: float | None = None) -> None:
        self.energies = energies
        self.temperature = temperature
        self.launches: Sequence[LaunchEnergy] = [
            LaunchEnergy(
                launch,
                energies,
                share=share / launch.cycles if launch.cycles else 1.0,
                temperature=temperature,
            )
            for launch, share in zip(result.launches, result.shares, strict=True)
        ]
        self.projected = Projected.of(result)
        components, classes, uncertain = (
            _sum(getattr(x, name) for x in self.launches) for name in ("components", "classes", "uncertain")
        )
        components = dict.fromkeys(COMPONENTS, 0.0) | components
        self.idle_seconds = _idle_seconds(result)
        on = {"power.chip_idle": 1, "power.board": 1, "power.sm_idle": result.machine.sm_count}
        self.idle_events = {key: self.idle_seconds * n for key, n in on.items() if self.idle_seconds}
        for key, seconds in self.idle_events.items():
            each, joules = energies.values[key], seconds * self.launches[0].value(key)
            components[_component(key)] += joules
            uncertain[each.source] = uncertain.get(each.source, 0.0) + joules * each.uncertainty
        super().__init__(
            sum(x.seconds for x in self.launches) + self.idle_seconds,
            components,
            classes,
            uncertain,
            tuple(dict.fromkeys(key for x in self.launches for key in x.missing)),
        )


@dataclass(frozen=True)
class Projected:
    """Energy of all launches of a program, from those of a plan. relative: half width of the plan's interval,
    as a share; it does not include the uncertainty of the energies."""

    joules: float
    relative: float
    confidence: float

    @classmethod
    def of(cls, result: Result) -> Projected | None:
        plan = (result.sampling or {}).get("plan") or {}
        found = plan.get("energy")
        if not found:
            return None
        return cls(found["total"], found["relative"] or 0.0, plan["confidence"])


def _component(key: str) -> str:
    return "tensor cores" if key.startswith(TENSOR) else _COMPONENT_OF[key]


def _shares(weights: Floats) -> Floats:
    whole = weights.sum()
    return weights / whole if whole else weights


def _sum(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for row in rows:
        for name, n in row.items():
            total[name] = total.get(name, 0.0) + n
    return total


def _idle_seconds(result: Result) -> float:
    if not result.launches:
        return 0.0
    spans = [x.interval for x in result.launches]
    whole = max(end for _, end in spans) - min(start for start, _ in spans)
    return (whole - covered(spans)) / (1000 * result.machine.core_khz)
