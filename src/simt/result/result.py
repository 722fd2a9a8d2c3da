"""The Result of a simulation."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from simt.errors import PowerError, ResultError
from simt.files import is_regular
from simt.names import kernel_labels
from simt.result import files, launch_table
from simt.result.columns import BLOCKS, COLUMNS, ROWS, expanded
from simt.result.counters import Value
from simt.result.elapsed import covered, shares
from simt.result.launch import (
    CacheTable,
    LaunchRecord,
    LaunchResult,
    Machine,
    MachineRecord,
    evaluate_counters,
    without_nan,
)
from simt.result.sampling_record import SamplingSummary
from simt.result.transfer import Transfer, TransferColumns, from_columns, to_columns
from simt.written import Amount, Count, Positive, WrittenAs, written

if TYPE_CHECKING:
    import polars as pl

    from simt.explain import Explanation
    from simt.power import Energies, ProgramEnergy

SCHEMA = ROWS


@dataclass(frozen=True)
class Provenance:
    """Everything that a Result was computed from. Two Results with the same `identity` have the same
    counters, energy aside: that is of `Result.energies`.
    """

    input: Annotated[str, Meta(description="Path as given.")]
    input_hash: str
    gpu: str
    spec_hash: str
    overrides: dict[str, Any]
    version: Annotated[str, Meta(description="Version of simt.")]
    method: Annotated[str, Meta(description="`full`: every instruction of every selected launch.")]
    kernels: Annotated[str | None, Meta(description="The selection; null: all.")]
    max_cycles: Positive | None
    timeline: Annotated[Positive | None, Meta(description="Interval in core cycles.")]
    resumed_after: Annotated[Count, Meta(description="Launches taken over from an earlier, unfinished run.")]
    # How it was computed; counters do not depend on it.
    threads: Annotated[Positive, Meta(description="Host threads; no influence on counters.")]
    wall_seconds: Amount
    created: Annotated[str, Meta(description="ISO 8601, UTC.")]
    full_wall_seconds: Annotated[
        Amount | None,
        Meta(description="Host time of full detail, measured or estimated, for a sampled run."),
    ] = None
    code: Annotated[
        str,
        Meta(description="What was executed where there is a choice: PTX, machine code, or a trace."),
    ] = ""

    @property
    def identity(self) -> Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]:
        """SHA-256 over everything that counters depend on, which excludes the input's path, the threads and
        the
        time.
        """
        keep = asdict(self)
        for name in ("input", "threads", "wall_seconds", "created", "full_wall_seconds", "code"):
            del keep[name]
        return hashlib.sha256(json.dumps(keep, sort_keys=True).encode()).hexdigest()

    @property
    def configuration(self) -> str:
        """What was overridden, the code and the method, as comparisons name them."""
        parts = [f"{key}={value}" for key, value in self.overrides.items()]
        return ", ".join(
            [*parts, *([self.code] if self.code else []), *([self.method] * (self.method != "full"))]
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "identity": self.identity}


ProvenanceRecord = written(
    Provenance,
    optional=["full_wall_seconds", "code"],
    derived={"full_wall_seconds": ["identity"]},
    forbid_unknown_fields=True,
)


@dataclass(frozen=True)
class Totals:
    """Sums over all launches. `cycles` counts those in which at least one launch was running."""

    launches: Count
    cycles: Annotated[Count, Meta(description="Core cycles in which at least one launch was under way.")]
    launch_latency: Annotated[Count, Meta(description="Summed over launches.")]
    clock_khz: int
    engine: dict[str, int] = field(repr=False)
    l1: CacheTable = field(repr=False)
    l2: CacheTable = field(repr=False)
    stalls: dict[str, list[int]] = field(repr=False)
    warp_stalls: dict[str, int] = field(repr=False)
    counters: Annotated[
        dict[str, Value],
        WrittenAs(dict[str, float | None]),
        Meta(description="Every counter of docs/counters.md by name; null where a ratio has no denominator."),
    ] = field(repr=False)

    @property
    def seconds(self) -> float:
        return self.cycles / (1000 * self.clock_khz) if self.clock_khz else math.nan

    @property
    def warp_instructions(self) -> Count:
        return self.engine.get("warp_instructions", 0)

    @property
    def thread_instructions(self) -> Count:
        return self.engine.get("thread_instructions", 0)

    def to_json(self) -> dict[str, Any]:
        return {
            "launches": self.launches,
            "cycles": self.cycles,
            "launch_latency": self.launch_latency,
            "warp_instructions": self.warp_instructions,
            "thread_instructions": self.thread_instructions,
            "counters": without_nan(self.counters),
        }


TotalsRecord = written(
    Totals,
    optional=("launches", "cycles", "launch_latency", "counters"),  # nothing reads them from a file
    derived={"counters": ["warp_instructions", "thread_instructions"]},
    without=("clock_khz", "engine", "l1", "l2", "stalls", "warp_stalls"),
)


@dataclass(frozen=True)
class Result:
    """Counters per launch, timeline, and provenance.

    `status` is "complete", or the reason why selected launches are missing: "max_cycles", "timeout",
    "interrupted", "deadlock", "failed". `unfinished` holds the positions (`LaunchResult.index`) of those
    launches.
    """

    launches: Annotated[
        Sequence[LaunchResult],
        WrittenAs(list[LaunchRecord]),
        Meta(description="Finished launches in the order of the input."),
    ]
    machine: Annotated[
        Machine,
        WrittenAs(MachineRecord),
        Meta(description="The facts of the GPU specification that ratios need."),
    ]
    provenance: Annotated[Provenance, WrittenAs(ProvenanceRecord)]
    warnings: tuple[str, ...] = ()
    status: Annotated[
        str,
        WrittenAs(Literal["complete", "max_cycles", "timeout", "interrupted", "deadlock", "failed"]),
        Meta(description="Whether all selected launches finished, or why not."),
    ] = "complete"
    unfinished: Annotated[
        tuple[int, ...],
        WrittenAs(tuple[Count, ...]),
        Meta(description="`index` of the selected launches that did not finish."),
    ] = ()
    sampling: Annotated[
        dict[str, Any] | None,
        WrittenAs(SamplingSummary | None),
        Meta(
            description="How much was simulated and how wrong it may be; only of sampled runs "
            "(simt.control.accuracy)."
        ),
    ] = None
    transfers: Annotated[
        tuple[Transfer, ...],
        WrittenAs(TransferColumns | None),
        Meta(
            description="Copies and memsets in the order in which they ended: a value per transfer in each "
            "column. Absent without any."
        ),
    ] = ()
    energies: Energies | None = None  # of a run with `power`

    @cached_property
    def totals(self) -> Annotated[Totals, WrittenAs(TotalsRecord)]:
        engine: dict[str, int] = {}
        warp_stalls: dict[str, int] = {}
        l1: CacheTable = {}
        l2: CacheTable = {}
        stalls: dict[str, list[int]] = {}
        intervals: list[tuple[int, int]] = []
        latency = ctas = 0
        for launch in self.launches:  # once: many launches are read from a file
            _add(engine, launch.engine)
            _add(warp_stalls, launch.warp_stalls)
            _add_table(l1, launch.l1)
            _add_table(l2, launch.l2)
            for reason, row in launch.stalls.items():
                into = stalls.setdefault(reason, [0] * len(row))
                into.extend([0] * (len(row) - len(into)))
                for i, n in enumerate(row):
                    into[i] += n
            intervals.append(launch.interval)
            latency += launch.launch_latency
            ctas += math.prod(launch.grid)
        cycles = covered(intervals)
        names: dict[str, float] = {
            "cycles": cycles,
            "launch_latency": latency,
            "clock_khz": self.machine.core_khz,
            "grid_ctas": ctas,
        }
        if self.energies is not None:
            names["joules"] = sum(x.joules for x in self.energy.launches)  # as cycles, without idle gaps
        counters = evaluate_counters(names, self.machine, cycles, engine, l1, l2, stalls, warp_stalls)
        return Totals(
            len(self.launches),
            cycles,
            latency,
            self.machine.core_khz,
            engine,
            l1,
            l2,
            stalls,
            warp_stalls,
            counters,
        )

    @cached_property
    def energy(self) -> ProgramEnergy:
        """Energy and power of the launches, by the run's energies (`power=`) or those of the GPU.

        Raises PowerError if there are none.
        """
        return self.energy_by()

    def energy_by(
        self, energies: Energies | str | os.PathLike[str] | None = None, temperature: float | None = None
    ) -> ProgramEnergy:
        """The same with other energies: a GPU's name, a TOML file, or Energies; and at another temperature of
        the chip, in degrees Celsius. Raises PowerError.
        """
        from simt.power import Energies, ProgramEnergy, load_energies

        found = energies or self.energies or self.machine.name
        if not isinstance(found, Energies):
            found = load_energies(found)
        return ProgramEnergy(self, found, temperature=temperature)

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """For each launch, its part of the cycles in `totals`: cycles in which several launches run are
        divided
        evenly among them.
        """
        return tuple(shares([x.interval for x in self.launches]))

    @property
    def confidence(
        self,
    ) -> Annotated[
        Any,  # simt.validate.confidence.Confidence, which builds on this module
        WrittenAs(dict[str, Any]),
        Meta(
            description="How far the time may be off: `interval`, multiples of the simulated time between "
            "which the true one lies in 9 of 10 cases, or null if unknown; what that follows from; code, "
            "conditions, approximations."
        ),
    ]:
        """How far its time may be off, by the errors of the nearest runs compared with real GPUs;
        what was approximated; what ran, under which conditions (docs/confidence.md).
        """
        from simt.validate.confidence import confidence

        return confidence(self)

    def explain(self, launch: int | None = None, **options: Any) -> Explanation:
        """Why a launch takes its time, and what removing each cause would gain: `simt.explain.explain` of
        this Result, which has the options.

        launch: its id; None: the longest.
        """
        from simt.explain import explain

        return explain(self, launch=launch, **options)

    def labels(self, width: int = 44) -> dict[str, str]:
        """A short text for each kernel's name, unique within the Result."""
        return kernel_labels((x.name for x in self.launches), width)

    def __getitem__(self, launch_id: int) -> LaunchResult:
        """The launch with this id. Raises KeyError."""
        for launch in self.launches:
            if launch.id == launch_id:
                return launch
        raise KeyError(f"no finished launch has id {launch_id}")

    def to_polars(self, table: str = "launches") -> pl.DataFrame:
        """One of the tables as a polars DataFrame.

        - `launches`: one row per launch; its fields and every counter of docs/counters.md.
        - `stalls`: one row per launch, scheduler and reason; `cycles` of the scheduler, summed over SMs. In
          cycles of `selected`, it issued.
        - `pc`: one row per launch and static instruction; `issued`, and `stalled_*` by state: how often a
          warp was found in this state at the instruction, sampled every `sample_interval` cycles.
        - `timeline`: one row per launch and interval (empty unless a timeline was requested).
        - `dram`: one row per launch, interval and channel.
        - `dram_banks`: one row per launch, interval, channel and bank that was in use.
        - `timeline_pc`: one row per launch, interval and instruction in use, by its position in `pc`.
        - `spread`: one row per launch and SM or L2 slice: the launch's work by SM and slice.
        - `energy`: one row per launch of a run with `power`: `joules` with its 95 % interval, `watts`, and J
        of
          each component.
        - `power`: one row per launch and interval of a run with `power` and a timeline: W of each component.
        - `transfers`: one row per copy or memset, in the order in which they ended.

        Raises ValueError for another name.
        """
        from simt.result import tables

        names = (*tables.TABLES, tables.TRANSFERS)
        if table not in names:
            raise ValueError(f"no table {table!r}: expected one of {', '.join(names)}")
        if table == tables.TRANSFERS:
            return tables.transfer_table(self.transfers)
        return tables.TABLES[table](self.launches)

    def to_json(self, detail: bool = False) -> dict[str, Any]:
        """The Result as one JSON object of the schema simt.result/1 (simt.result-1.schema.json).

        `detail` adds the tables `pc` and `timeline` to each launch.
        """
        return self.around([launch.to_json(detail) for launch in self.launches])

    def around(self, launches: Any) -> dict[str, Any]:
        """The JSON object with these launches in place of its own."""
        found = {
            "schema": SCHEMA,
            "status": self.status,
            "launches": launches,
            "unfinished": list(self.unfinished),
            "totals": self.totals.to_json(),
            "warnings": list(self.warnings),
            "machine": asdict(self.machine),
            "provenance": self.provenance.to_json(),
            "confidence": self.confidence.to_json(),
        }
        if self.transfers:
            found["transfers"] = to_columns(self.transfers)
        if self.energies is not None:
            found["energies"] = self.energies.to_json()
        return found if self.sampling is None else {**found, "sampling": self.sampling}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """Reads the output of to_json, or the object in a saved file. Raises ResultError."""
        data = expanded(data)
        schema = data.get("schema") if isinstance(data, Mapping) else None
        if schema != SCHEMA:
            raise ResultError(
                f"not a Result: schema is {repr(schema)[:60]}, expected {SCHEMA!r}, {COLUMNS!r} or {BLOCKS!r}"
            )
        from simt.result.schema import check

        check(data)
        try:
            machine = Machine(**data["machine"])
            energies = _energies(data.get("energies"))
            provenance = {k: v for k, v in data["provenance"].items() if k != "identity"}
            return cls(
                launches=tuple(LaunchResult.from_json(x, machine, energies) for x in data["launches"]),
                machine=machine,
                provenance=Provenance(**provenance),
                warnings=tuple(data["warnings"]),
                status=data["status"],
                unfinished=tuple(data["unfinished"]),
                sampling=data.get("sampling"),
                transfers=from_columns(data["transfers"]) if data.get("transfers") else (),
                energies=energies,
            )
        except (KeyError, TypeError, AttributeError, PowerError) as error:
            raise ResultError(f"broken Result: {error}") from error

    def operators(self) -> pl.DataFrame:
        """What the annotations of launches took (`GPU.annotate`; operators of PyTorch models), in the order
        of their first launch: `operator`, `launches`, `cycles`, `share` of the cycles of all launches, and
        `warp_instructions`. Launches without an annotation are in the row "".
        """
        from simt.result import tables

        return tables.operator_table(self.launches)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the Result and returns the path.

        A path that ends in `.json` becomes one JSON file with everything. Any other path becomes a directory
        with `result.json` and one Parquet file per table of `to_polars`. Files appear whole or not at all.
        Raises ResultError.
        """
        return files.save(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Reads what `save` wrote, or the journal of a run that has not saved its Result.

        Raises ResultError.
        """
        from simt.result.journal import journal_of, read_journal

        path = Path(path)
        if is_regular(journal := journal_of(path)):
            return read_journal(journal).result
        try:
            return cls.from_json(files.load(path))
        except (ResultError, RecursionError) as error:
            raise ResultError(f"{path}: {error}") from error

    def __repr__(self) -> str:
        return launch_table.text(self)

    def _repr_html_(self) -> str:
        return launch_table.notebook_page(self)


ResultRecord = written(
    Result,
    optional=("sampling", "transfers", "energies"),
    derived={"provenance": ["totals"], "sampling": ["confidence"]},
    instead={
        "energies": Annotated[
            dict[str, Any] | None,
            Meta(
                description="Energies and powers of a run with `power`, with their sources (docs/power).",
                extra_json_schema={"$ref": "#/$defs/Energies"},
            ),
        ]
    },
)
"""A Result as it is written (simt.result/1)."""


def _energies(data: Any) -> Energies | None:
    if data is None:
        return None
    from simt.power import Energies

    return Energies.from_json(data)


def _add_table(total: CacheTable, table: CacheTable) -> None:
    for kind, row in table.items():
        _add(total.setdefault(kind, {}), row)


def _add(total: dict[str, int], row: Mapping[str, int]) -> None:
    for name, n in row.items():
        total[name] = total.get(name, 0) + n
