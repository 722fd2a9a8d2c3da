"""CSV of nvprof's GPU trace: `nvprof --csv --print-gpu-trace`, with times or with events and metrics.

Source of the layout: CUDA Profiler User's Guide, sections "GPU-Trace Mode" and "Event/metric Trace Mode".
A metric with the same meaning as one of Nsight Compute's counters gets that counter's name.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.csv_table import Header, base_unit, read_text, require, try_numbers
from simt.profile.profile import COPY, Profile
from simt.profile.source import ProfileSource

_TIMES = {
    "Grid X": "grid_x", "Grid Y": "grid_y", "Grid Z": "grid_z",
    "Block X": "block_x", "Block Y": "block_y", "Block Z": "block_z",
    "Registers Per Thread": "registers", "Stream": "stream",
}  # fmt: skip
_ABOUT = {"Device", "Context", "Stream", "Kernel", "Correlation_ID"}
# Metric of nvprof: (counter of Nsight Compute, factor). Source: Nsight Compute CLI guide, "nvprof metric
# comparison", and the pairs that Accel-Sim's correlator uses (ISCA'20 section II-D).
_METRICS = {
    "inst_executed": ("smsp__inst_executed.sum", 1.0),
    "inst_issued": ("smsp__inst_issued.sum", 1.0),
    "thread_inst_executed": ("smsp__thread_inst_executed.sum", 1.0),
    "achieved_occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", 100.0),
    "gld_transactions": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1.0),
    "gst_transactions": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 1.0),
    "local_load_transactions": ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", 1.0),
    "local_store_transactions": ("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", 1.0),
    "tex_cache_hit_rate": ("l1tex__t_sector_hit_rate.pct", 1.0),
    "l2_tex_read_transactions": ("lts__t_sectors_srcunit_tex_op_read.sum", 1.0),
    "l2_tex_write_transactions": ("lts__t_sectors_srcunit_tex_op_write.sum", 1.0),
    "l2_tex_read_throughput": ("lts__t_sectors_srcunit_tex_op_read.sum.per_second", 1.0 / 32),
    "dram_read_transactions": ("dram__sectors_read.sum", 1.0),
    "dram_write_transactions": ("dram__sectors_write.sum", 1.0),
    "inst_executed_global_loads": ("smsp__inst_executed_op_global_ld.sum", 1.0),
    "inst_executed_global_stores": ("smsp__inst_executed_op_global_st.sum", 1.0),
    "inst_executed_local_loads": ("smsp__inst_executed_op_local_ld.sum", 1.0),
    "inst_executed_local_stores": ("smsp__inst_executed_op_local_st.sum", 1.0),
    "inst_executed_shared_loads": ("smsp__inst_executed_op_shared_ld.sum", 1.0),
    "inst_executed_shared_stores": ("smsp__inst_executed_op_shared_st.sum", 1.0),
}
_VALUE = r"^\s*(-?[\d.,]+(?:e[+-]?\d+)?)\s*([A-Za-z%][A-Za-z/%]*)?\s*$"


def is_nvprof_header(names: Sequence[str]) -> bool:
    return {"Start", "Duration", "Grid X", "Name"}.issubset(names) or {"Kernel", "Correlation_ID"}.issubset(
        names
    )


def read_nvprof_csv(source: ProfileSource, process: int | None, header: Header) -> Profile:
    """One row per launch, in launch order. Events, and metrics unknown to Nsight Compute, keep nvprof's
    names.

    Raises ProfileError if a column is missing, or if a time or size is not a number.
    """
    frame = read_text(source, header)
    findings = Findings(source.name, process=process)
    read = _metrics if "Kernel" in frame.columns else _times
    table = read(frame, findings)
    return assemble(table, findings, ("order", "start_ns"))


def _times(frame: pl.DataFrame, findings: Findings) -> pl.DataFrame:
    require(frame, ["Start", "Duration", "Grid X", "Name"], findings.source)
    # The first row below the header gives units; a log of several runs contains further headers and units.
    is_unit = frame["Name"].fill_null("") == ""
    is_header = frame["Start"] == "Start"
    part = is_unit.cast(pl.UInt32).cum_sum()
    units = frame.filter(is_unit)
    rows = frame.filter(~is_unit & ~is_header.fill_null(False))
    part = part.filter(~is_unit & ~is_header.fill_null(False))

    def number(name: str) -> pl.Series:
        factors = pl.Series([1.0, *(base_unit(u or "") for u in units[name].to_list())])
        values, bad = try_numbers(rows[name])
        if bad is not None:
            raise ProfileError(
                f"{findings.source}: column `{name}`, launch {bad}: {rows[name][bad]!r} is not a number"
            )
        return values * factors.gather(part)

    columns = [rows["Name"].str.replace(r"\s*\[\d+\]\s*$", "").alias("name")]
    columns += [number("Start").alias("start_ns"), number("Duration").alias("duration_ns")]
    columns += [number(old).alias(new) for old, new in _TIMES.items() if old in rows.columns]
    shared = [number(name).fill_null(0) for name in ("Static SMem", "Dynamic SMem") if name in rows.columns]
    if shared:
        columns.append(sum(shared[1:], shared[0]).round().alias("shared_bytes"))
    if "Correlation_ID" in rows.columns:
        columns.append(number("Correlation_ID").alias("order"))
    _device(rows, findings)
    table = pl.DataFrame(columns)
    for name in ("start_ns", "duration_ns"):
        if table[name].null_count():
            raise ProfileError(
                f"{findings.source}: launch {table[name].is_null().arg_max()}: no {name.removesuffix('_ns')}"
            )
    copies = table.filter(pl.col("grid_x").is_null())
    findings.left_out.append((COPY, len(copies), float(copies["duration_ns"].sum())))
    return table.filter(pl.col("grid_x").is_not_null())


def _metrics(frame: pl.DataFrame, findings: Findings) -> pl.DataFrame:
    rows = frame.filter(pl.col("Kernel").fill_null("").is_in(["", "Kernel"]).not_())
    columns = [rows["Kernel"].str.replace(r"\s*\[\d+\]\s*$", "").alias("name")]
    order, bad = try_numbers(rows["Correlation_ID"])
    if bad is None:
        columns.append(order.alias("order"))
    stream, bad = try_numbers(rows["Stream"]) if "Stream" in rows.columns else (None, 0)
    if stream is not None and bad is None:
        columns.append(stream.alias("stream"))
    _device(rows, findings)
    dropped, taken = [], set()
    for name in rows.columns:
        if name in _ABOUT:
            continue
        # A value may include its unit: `12.5GB/s`, `98.1%`; a level such as `Low (2)` is read as its number.
        text = rows[name].str.replace(r"^\s*[A-Za-z]+ \((\d+)\)\s*$", "$1").str.extract_groups(_VALUE)
        values, bad = try_numbers(text.struct.field("1"))
        nothing = values.is_null() & rows[name].is_not_null() & (rows[name].str.strip_chars() != "")
        counter, factor = _METRICS.get(name, (name, 1.0))
        if bad is not None or nothing.any() or counter in taken:
            dropped.append(name)
            continue
        taken.add(counter)
        unit = text.struct.field("2").fill_null("")
        factors = {u: base_unit(u) * factor for u in unit.unique().to_list()}
        scale = unit.replace_strict(list(factors), list(factors.values()), return_dtype=pl.Float64)
        columns.append((values * scale).alias(counter))
    if dropped:
        findings.warnings.append(f"metrics that are not numbers, or occur twice: {', '.join(dropped)}")
    return pl.DataFrame(columns)


def _device(rows: pl.DataFrame, findings: Findings) -> None:
    if "Device" in rows.columns:
        gpus = rows["Device"].str.replace(r"\s*\(\d+\)\s*$", "").drop_nulls().unique().sort().to_list()
        findings.gpu = str(gpus[0]) if len(gpus) == 1 else None
