"""The tables of a Result as polars DataFrames, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from simt.result.launch import LaunchResult
from simt.result.listing import REGISTERS, TEXTS
from simt.result.timeline import BANKS, INSTRUCTIONS, ROWS, STATES
from simt.result.timeline import columns as row_columns
from simt.result.transfer import COLUMNS, Transfer, to_columns

# Columns of the engine's timeline that hold one number per interval, and those that hold one per channel.
_TIMELINE_COLUMNS = (
    "warp_instructions",
    "thread_instructions",
    "active_warps",
    "ctas",
    "ctas_finished",
    "finished_instructions",
    "l1_accesses",
    "l1_hits",
    "l2_accesses",
    "l2_hits",
)
_PC_COLUMNS = ("pc", "opcode", "source_line", "issued")
_LATER_PC_COLUMNS = ("threads", *TEXTS, *REGISTERS)  # missing from Results of earlier versions
_DRAM_COLUMNS = ("dram_reads", "dram_writes", "dram_bus_cycles", "dram_pending_cycles")


def launch_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    rows = []
    for launch in launches:
        nested = ("counters", "engine", "l1", "l2", "stalls", "warp_stalls", "warnings", "sampled")
        row = {k: v for k, v in launch.to_json().items() if k not in nested}
        rows.append({**row, **launch.counters})
    return pl.DataFrame(rows, infer_schema_length=None)


def stall_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    rows = [
        {"launch_index": x.index, "launch_id": x.id, "scheduler": i, "reason": reason, "cycles": n}
        for x in launches
        for reason, row in x.stalls.items()
        for i, n in enumerate(row)
    ]
    schema = {
        "launch_index": pl.Int64,
        "launch_id": pl.Int64,
        "scheduler": pl.Int64,
        "reason": pl.String,
        "cycles": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema)


class _Gathered:
    """The rows of many launches, column by column: a frame for each launch would take a millisecond."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {}
        self._rows = 0

    def add(self, launch: LaunchResult, columns: Mapping[str, Sequence[Any]]) -> None:
        """Rows of a launch; where it lacks a column that others have, the column is null."""
        count = len(next(iter(columns.values())))
        places = {"launch_index": [launch.index] * count, "launch_id": [launch.id] * count}
        for name, values in {**places, **columns}.items():
            if (column := self._columns.get(name)) is None:
                column = self._columns[name] = [None] * self._rows
            column.extend(values)
        self._rows += count
        for column in self._columns.values():
            if len(column) < self._rows:
                column.extend([None] * (self._rows - len(column)))

    def frame(self, types: Mapping[str, type[pl.DataType]] = MappingProxyType({})) -> pl.DataFrame:
        """types: of columns that are not whole numbers of 64 bits."""
        return pl.DataFrame(
            [
                pl.Series(name, values, dtype=types.get(name, pl.Int64))
                for name, values in self._columns.items()
            ]
        )


def pc_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    found = _Gathered()
    for launch in launches:
        if not launch.pc:
            continue
        names = [*_PC_COLUMNS, *(name for name in _LATER_PC_COLUMNS if name in launch.pc)]
        columns = {name: launch.pc[name] for name in names}
        columns["sample_interval"] = [launch.pc["sample_interval"]] * len(launch.pc["pc"])
        columns |= {f"stalled_{reason}": counts for reason, counts in launch.pc["stalled"].items()}
        found.add(launch, columns)
    return found.frame({"pc": pl.UInt64, **dict.fromkeys(("opcode", *TEXTS), pl.String)})


def timeline_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    found = _Gathered()
    for launch in launches:
        if launch.timeline is None:
            continue
        t = launch.timeline
        names = [name for name in ("cycle", *_TIMELINE_COLUMNS) if name in t]
        columns = {"interval": [t["interval"]] * len(t["cycle"]), **{name: t[name] for name in names}}
        columns |= {name: [sum(row) for row in t[name]] for name in _DRAM_COLUMNS}
        columns |= {f"{name}_{state}": row for name in STATES for state, row in t.get(name, {}).items()}
        found.add(launch, columns)
    return found.frame()


def dram_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    found = _Gathered()
    for launch in launches:
        t = launch.timeline
        if t is None or not t["cycle"]:
            continue
        channels = len(t["dram_reads"][0])
        columns: dict[str, Any] = {
            "cycle": [cycle for cycle in t["cycle"] for _ in range(channels)],
            "channel": list(range(channels)) * len(t["cycle"]),
        }
        columns |= {name: [n for row in t[name] for n in row] for name in _DRAM_COLUMNS}
        found.add(launch, columns)
    return found.frame()


def bank_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    return _rows_table(launches, BANKS)


def instruction_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    return _rows_table(launches, INSTRUCTIONS)


def _rows_table(launches: Sequence[LaunchResult], part: str) -> pl.DataFrame:
    """A part of the timelines; `cycle` is the end of the interval."""
    frames = []
    for launch in launches:
        t = launch.timeline
        if t is None or part not in t:
            continue
        found = row_columns(t, part)
        ends = np.array(t["cycle"], np.int64)[found["interval"]]
        frames.append(
            pl.DataFrame({"interval": found.pop("interval"), "cycle": ends, **found}).select(
                pl.lit(launch.index, pl.Int64).alias("launch_index"),
                pl.lit(launch.id, pl.Int64).alias("launch_id"),
                pl.all(),
            )
        )
    return pl.concat(frames) if frames else pl.DataFrame()


def spread_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    found = _Gathered()
    for launch in launches:
        for unit, columns in launch.spread.items():
            count = len(next(iter(columns.values())))
            found.add(launch, {"unit": [unit] * count, "number": range(count), **columns})
    return found.frame({"unit": pl.String})


def details(frames: Mapping[str, pl.DataFrame]) -> dict[int, dict[str, Any]]:
    """The inverse of the tables in DETAILS: "pc", "timeline" and "spread" by launch index."""
    pc, timeline, dram, spread = (frames[name] for name in ("pc", "timeline", "dram", "spread"))
    found: dict[int, dict[str, Any]] = {}
    for index, part in _by_launch(pc):
        columns: dict[str, Any] = {
            name: part[name].to_list()
            for name in (*_PC_COLUMNS, *_LATER_PC_COLUMNS)
            if name in part.columns and part[name].null_count() == 0
        }
        columns["sample_interval"] = part["sample_interval"][0]
        columns["stalled"] = {
            name.removeprefix("stalled_"): part[name].to_list()
            for name in part.columns
            if name.startswith("stalled_") and part[name].null_count() == 0
        }
        found.setdefault(index, {})["pc"] = columns
    channels = dict(_by_launch(dram))
    rows = {table: dict(_by_launch(frames[table])) for table in _ROWS_TABLES}
    for index, part in _by_launch(timeline):
        names = [name for name in ("cycle", *_TIMELINE_COLUMNS) if name in part.columns]
        columns = {name: part[name].to_list() for name in names}
        columns["interval"] = part["interval"][0]
        by_channel = channels[index]
        width = by_channel.height // part.height
        for name in _DRAM_COLUMNS:
            flat = by_channel[name].to_list()
            columns[name] = [flat[i : i + width] for i in range(0, len(flat), width)]
        for name in STATES:
            states = {
                column.removeprefix(f"{name}_"): part[column].to_list()
                for column in part.columns
                if column.startswith(f"{name}_") and part[column].null_count() == 0
            }
            if states:
                columns[name] = states
        if "stalls" in columns:  # then it is of a version that has rows, even if nothing was in use
            for table, name in _ROWS_TABLES.items():
                own = rows[table].get(index)
                columns[name] = {c: [] if own is None else own[c].to_list() for c in ROWS[name]}
        found.setdefault(index, {})["timeline"] = columns
    for index, part in _by_launch(spread):
        units = found.setdefault(index, {}).setdefault("spread", {})
        for unit in part["unit"].unique(maintain_order=True):
            own = part.filter(pl.col("unit") == unit).drop("launch_index", "launch_id", "unit", "number")
            units[unit] = {name: own[name].to_list() for name in own.columns if own[name].null_count() == 0}
    return found


def _by_launch(frame: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    if frame.is_empty():
        return []
    return [
        (part["launch_index"][0], part) for part in frame.partition_by("launch_index", maintain_order=True)
    ]


def operator_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    """Sums by annotation."""
    schema = {"operator": pl.String, "cycles": pl.Int64, "warp_instructions": pl.Int64}
    rows = [(x.annotation, x.cycles, x.warp_instructions) for x in launches]
    return (
        pl.DataFrame(rows, schema=schema, orient="row")
        .group_by("operator", maintain_order=True)
        .agg(pl.len().cast(pl.Int64).alias("launches"), pl.sum("cycles"), pl.sum("warp_instructions"))
        .with_columns((pl.col("cycles") / pl.sum("cycles")).alias("share"))
        .select("operator", "launches", "cycles", "share", "warp_instructions")
    )


def transfer_table(transfers: Sequence[Transfer]) -> pl.DataFrame:
    types = dict.fromkeys(COLUMNS, pl.Int64) | {"link": pl.String}
    return pl.DataFrame(to_columns(transfers), schema=types) if transfers else pl.DataFrame()


def energy_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    """Energy of launches of a run with `power`, each as if it had run alone."""
    rows = [
        {
            "launch_index": x.index,
            "launch_id": x.id,
            "joules": x.energy.joules,
            "low": x.energy.interval[0],
            "high": x.energy.interval[1],
            "watts": x.energy.watts,
            "energy_delay": x.energy.energy_delay,
            **{_column(name): joules for name, joules in x.energy.components.items()},
        }
        for x in launches
        if x.energies is not None
    ]
    return pl.DataFrame(rows)


def power_table(launches: Sequence[LaunchResult]) -> pl.DataFrame:
    """Power over time of launches with a timeline, of a run with `power`."""
    from simt.power import power_over_time

    frames = []
    for launch in launches:
        if launch.energies is None or (found := power_over_time(launch.energy)) is None:
            continue
        columns = {"cycle": found.end, "watts": found.watts}
        columns |= {_column(name): joules / found.seconds for name, joules in found.joules.items()}
        frames.append(
            pl.DataFrame(columns).select(
                pl.lit(launch.index, pl.Int64).alias("launch_index"),
                pl.lit(launch.id, pl.Int64).alias("launch_id"),
                pl.all(),
            )
        )
    return pl.concat(frames) if frames else pl.DataFrame()


def _column(component: str) -> str:
    return component.lower().replace(" ", "_").replace("-", "_").replace("/", "_")


_ROWS_TABLES = {"dram_banks": BANKS, "timeline_pc": INSTRUCTIONS}
DETAILS = ("pc", "timeline", "dram", *_ROWS_TABLES, "spread")  # what a launch has beside result.json
TRANSFERS = "transfers"  # the one table that is not of launches
TABLES: dict[str, Callable[[Sequence[LaunchResult]], pl.DataFrame]] = {
    "launches": launch_table,
    "stalls": stall_table,
    "pc": pc_table,
    "timeline": timeline_table,
    "dram": dram_table,
    "dram_banks": bank_table,
    "timeline_pc": instruction_table,
    "spread": spread_table,
    "energy": energy_table,
    "power": power_table,
}
