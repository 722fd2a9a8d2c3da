"""rocpd: the SQLite databases of rocprofv3, its default format since ROCm 7.

Source of table and column meanings: ROCprofiler-SDK's `rocpd_tables.sql`, schemas 3 (times in the records)
and 4 (times and places in tables of their own). The name of each table ends in the id of the run that wrote
it; a merged database has the tables of several runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings
from simt.profile.profile import COLUMNS, COPY, Profile
from simt.profile.rocprof import kernel_name, profile_of_dispatches
from simt.profile.sqlite_tables import Tables, quoted

_DISPATCHES = "rocpd_kernel_dispatch"
_SIZES = tuple(f"{what}_size_{axis}" for what in ("workgroup", "grid") for axis in "xyz")
_PLACES = ("pid", "agent_id", "queue_id", "stream_id")  # in schema 4 those of the record's track
_RENAMED = {
    **{f"workgroup_size_{axis}": f"block_{axis}" for axis in "xyz"},
    **{f"grid_size_{axis}": f"items_{axis}" for axis in "xyz"},
    "group_segment_size": "shared_bytes",
    "dispatch_id": "dispatch",
    "pid": "process",
}


def is_rocpd(tables: Tables) -> bool:
    """Whether these are the tables of a rocpd database."""
    return any(name.startswith(("rocpd_metadata", _DISPATCHES)) for name in tables.columns)


def read_rocpd(tables: Tables, process: int | None) -> Profile:
    """Kernel dispatches in the order of their ids (by time, if there are several processes), with the sum of
    each counter's instances.

    Raises ProfileError if there are none, or the database is damaged.
    """
    findings = Findings(tables.source, process=process)
    runs = sorted(
        name.removeprefix(_DISPATCHES)
        for name in tables.columns
        if name.startswith(_DISPATCHES) and not (name == _DISPATCHES and _has_runs(tables))
    )
    frames = [frame for run in runs if len(frame := _Run(tables, run, findings).dispatches())]
    if not frames:
        raise ProfileError(
            f"{tables.source}: a rocpd database without kernel dispatches; run rocprofv3 with --kernel-trace"
        )
    return profile_of_dispatches(pl.concat(frames, how="diagonal"), findings)


def _has_runs(tables: Tables) -> bool:
    """Whether tables bear the ids of runs: then those without one are views of them."""
    return any(name.startswith(f"{_DISPATCHES}_") for name in tables.columns)


class _Run:
    """The tables of one run of rocprofv3."""

    def __init__(self, tables: Tables, run: str, findings: Findings) -> None:
        self.tables, self.run, self.findings = tables, run, findings

    def dispatches(self) -> pl.DataFrame:
        """One row a dispatch, as `profile_of_dispatches` takes them."""
        frame = self._records(
            _DISPATCHES, ("dispatch_id", "kernel_id", "event_id", "group_segment_size", *_SIZES)
        )
        missing = [name for name in ("kernel_id", "dispatch_id", *_SIZES) if name not in frame.columns]
        if missing:
            raise ProfileError(f"{self.findings.source}: {_DISPATCHES}{self.run} has no column {missing[0]}")
        frame = self._of_processes(frame)
        self._leave_out_copies()
        frame = frame.join(self._kernels(), on="kernel_id", how="left", maintain_order="left")
        unknown = frame.filter(pl.col("name").is_null())
        if len(unknown):
            raise ProfileError(
                f"{self.findings.source}: dispatch {unknown['dispatch_id'][0]}: kernel "
                f"{unknown['kernel_id'][0]} is not in rocpd_info_kernel_symbol"
            )
        frame = self._with_agents(frame)
        counters = self._counters()
        if counters is not None and "event_id" in frame.columns:
            frame = frame.join(counters, on="event_id", how="left", maintain_order="left")
        stream = next((name for name in ("stream_id", "queue_id") if name in frame.columns), None)
        if stream is not None:
            frame = frame.rename({stream: "stream"})
        return frame.rename(_RENAMED, strict=False).drop(
            "kernel_id", "event_id", "queue_id", "agent_id", strict=False
        )

    def _records(self, table: str, wanted: Sequence[str]) -> pl.DataFrame:
        """Records with `start` and `end`, ns, and those of _PLACES and of `wanted` that the table has."""
        name = table + self.run
        there = self.tables.columns[name]
        columns = [column for column in (*_PLACES, *wanted) if column in there]
        if {"start", "end"}.issubset(there):
            frame = self.tables.read(name, [*columns, "start", "end"])
        elif {"start_id", "end_id"}.issubset(there):
            frame = self.tables.read(name, [*columns, "start_id", "end_id"])
            times = self._read("rocpd_timestamp", ("id", "value")).unique("id", keep="first")
            for time in ("start", "end"):
                frame = frame.join(
                    times.rename({"id": f"{time}_id", "value": time}),
                    on=f"{time}_id",
                    how="left",
                    maintain_order="left",
                )
            frame = frame.drop("start_id", "end_id")
        else:
            raise ProfileError(f"{self.findings.source}: {name} has neither start and end nor their ids")
        if "track_id" in there:
            tracks = self._read("rocpd_track", ("id", *_PLACES), needed=("id",)).unique("id", keep="first")
            own = self.tables.read(name, ["track_id"])
            placed = own.join(
                tracks.rename({"id": "track_id"}), on="track_id", how="left", maintain_order="left"
            )
            frame = frame.with_columns(placed.drop("track_id", *columns, strict=False))
        bad = frame.filter((pl.col("end") < pl.col("start")).fill_null(True))
        if len(bad):
            raise ProfileError(
                f"{self.findings.source}: {name}: a record from {bad['start'][0]} to {bad['end'][0]} ns"
            )
        return frame

    def _read(self, table: str, columns: Sequence[str], needed: Sequence[str] | None = None) -> pl.DataFrame:
        """Integer columns of a table of this run: those of `columns` that it has, and all of `needed`, which
        are by default all.
        """
        name = table + self.run
        if not self.tables.has(name, *(columns if needed is None else needed)):
            raise ProfileError(
                f"{self.findings.source}: no table {name} with the columns {', '.join(needed or columns)}"
            )
        return self.tables.read(name, [column for column in columns if column in self.tables.columns[name]])

    def _of_processes(self, frame: pl.DataFrame) -> pl.DataFrame:
        """With the operating system's process ids in place of the database's."""
        if "pid" not in frame.columns or not self.tables.has(f"rocpd_info_process{self.run}", "id", "pid"):
            return frame
        known = self._read("rocpd_info_process", ("id", "pid"))
        return frame.with_columns(pl.col("pid").replace(known["id"].to_list(), known["pid"].to_list()))

    def _kernels(self) -> pl.DataFrame:
        """Name and registers of each kernel."""
        table = f"rocpd_info_kernel_symbol{self.run}"
        there = self.tables.columns.get(table, set())
        registers = [name for name in ("arch_vgpr_count", "accum_vgpr_count") if name in there]
        frame = self._read("rocpd_info_kernel_symbol", ("id", *registers), needed=("id",))
        texts = [name for name in ("extdata", "display_name", "kernel_name") if name in there]
        if not texts:
            raise ProfileError(f"{self.findings.source}: {table} has no column for the kernel's name")
        chosen = ", ".join(map(quoted, texts))
        rows = self.tables.database.execute(f"SELECT {chosen} FROM {quoted(table)}")
        names = [_full_name(dict(zip(texts, row, strict=True))) for row in rows]
        return frame.select(
            pl.col("id").alias("kernel_id"),
            pl.Series("name", names, pl.String),
            pl.sum_horizontal(registers).alias("registers") if registers else pl.lit(None).alias("registers"),
        ).unique("kernel_id", keep="first")

    def _with_agents(self, frame: pl.DataFrame) -> pl.DataFrame:
        """With the number of each dispatch's GPU among the GPUs as `device`; finds the GPU's name."""
        table = f"rocpd_info_agent{self.run}"
        there = self.tables.columns.get(table, set())
        if "agent_id" not in frame.columns or "id" not in there:
            return frame
        used = set(frame["agent_id"].drop_nulls().unique())
        number = next(
            (name for name in ("type_index", "logical_index", "absolute_index") if name in there), None
        )
        if number is not None:
            known = self._read("rocpd_info_agent", ("id", number)).filter(pl.col("id").is_in(list(used)))
            device = dict(zip(known["id"], known[number], strict=True))
            frame = frame.with_columns(
                pl.col("agent_id").replace_strict(device, default=None, return_dtype=pl.Int64).alias("device")
            )
        titles = [name for name in ("product_name", "model_name", "name") if name in there]
        rows = self.tables.database.execute(
            f"SELECT {', '.join(map(quoted, ('id', *titles)))} FROM {quoted(table)}"
        )
        gpus = {next((t for t in row[1:] if isinstance(t, str) and t), "") for row in rows if row[0] in used}
        gpus.discard("")
        if self.findings.gpu is not None:
            gpus.add(self.findings.gpu)
        self.findings.gpu = gpus.pop() if len(gpus) == 1 else None
        return frame

    def _counters(self) -> pl.DataFrame | None:
        """Counters by event: the sum of each one's instances."""
        events, info = f"rocpd_pmc_event{self.run}", f"rocpd_info_pmc{self.run}"
        named = next((name for name in ("name", "symbol") if self.tables.has(info, name)), None)
        if not self.tables.has(events, "event_id", "pmc_id", "value") or named is None:
            return None
        rows = self.tables.database.execute(
            f"SELECT e.event_id, i.{named}, total(e.value) FROM {quoted(events)} e "
            f"JOIN {quoted(info)} i ON i.id = e.pmc_id WHERE typeof(e.event_id) = 'integer' GROUP BY 1, 2"
        ).fetchall()
        if not rows:
            return None
        names = [str(name) for _, name, _ in rows]
        if taken := sorted(set(names) & {*COLUMNS, "process", "start", "end"}):
            raise ProfileError(f"{self.findings.source}: {info}: a counter called {taken[0]!r}")
        long = pl.DataFrame(
            {
                "event_id": pl.Series([row[0] for row in rows], dtype=pl.Int64),
                "counter": names,
                "value": pl.Series([row[2] for row in rows], dtype=pl.Float64),
            }
        )
        return long.pivot("counter", index="event_id", values="value")

    def _leave_out_copies(self) -> None:
        if f"rocpd_memory_copy{self.run}" not in self.tables.columns:
            return
        copies = self._of_processes(self._records("rocpd_memory_copy", ()))
        if self.findings.process is not None and "pid" in copies.columns:
            copies = copies.filter(pl.col("pid") == self.findings.process)
        ns = float((copies["end"] - copies["start"]).sum())
        self.findings.left_out.append((COPY, len(copies), ns))


def _full_name(texts: dict[str, object]) -> str | None:
    """The demangled name if the tool kept it; otherwise, the name that it displays, or the mangled one."""
    more = texts.pop("extdata", None)
    try:
        kept = json.loads(more) if isinstance(more, str) else None
    except (ValueError, RecursionError):
        kept = None
    demangled = kept.get("demangled_kernel_name") if isinstance(kept, dict) else None
    found = next((t for t in (demangled, *texts.values()) if isinstance(t, str) and t), None)
    return None if found is None else kernel_name(found)
