"""CSV of Nsight Compute: the raw page (one row per launch) and the pages with one row per metric.

Written by `ncu --csv --page raw` or `ncu --csv`; source of the layout: Nsight Compute CLI guide, section
"Console Output".
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.csv_table import Header, base_unit, read_text, triples, try_numbers
from simt.profile.profile import Profile
from simt.profile.source import ProfileSource

# Columns about the launch; all others are metrics.
_ABOUT = {
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC", "NVTX Push/Pop Stack", "NVTX Start/End",
}  # fmt: skip
_KEPT = ("ID", "Process ID", "Kernel Name", "Stream", "Device", "Block Size", "Grid Size")
_GPU_NAME = "device__attribute_display_name"
_DURATION = (
    "gpu__time_duration.sum",
    "gpu__time_duration.max",
    "gpu__time_duration.avg",
    "gpu__time_duration",
)
_SHARED = ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic")
# Names of some metrics on the details page.
_DISPLAYED = {
    "Duration": "gpu__time_duration.sum",
    "Elapsed Cycles": "gpc__cycles_elapsed.max",
    "Executed Instructions": "smsp__inst_executed.sum",
    "Registers Per Thread": "launch__registers_per_thread",
    "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
    "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
    "Grid Size": "launch__grid_size",
    "Block Size": "launch__block_size",
    "Threads": "launch__thread_count",
}


def is_ncu_header(names: Sequence[str]) -> bool:
    return "ID" in names and "Kernel Name" in names and len(names) > 2


def read_ncu_csv(source: ProfileSource, process: int | None, header: Header) -> Profile:
    """One row per launch, in the order of the file, with every numeric metric as a counter in its base unit.

    Raises ProfileError if rows contradict each other or a size is not three numbers.
    """
    frame = read_text(source, header)
    # A file with several runs has a header before each.
    frame = frame.filter(pl.col("ID") != "ID")
    findings = Findings(source.name, process=process)
    if {"Metric Name", "Metric Value"}.issubset(frame.columns):
        about, metrics = _one_row_a_metric(frame, source.name)
    else:
        about, metrics = _one_row_a_launch(frame, source.name, findings)
    if _GPU_NAME in frame.columns:
        gpus = frame[_GPU_NAME].drop_nulls().unique().sort().to_list()
        gpus = [gpu for gpu in gpus if gpu]
        findings.gpu = gpus[0] if len(gpus) == 1 else None
    return assemble(_launches(about, metrics, source.name, findings), findings, ())


def _one_row_a_launch(
    frame: pl.DataFrame, source: str, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Launches and their metrics of the raw page; a row without an ID gives the units of those below it."""
    is_unit = frame["ID"].fill_null("").str.strip_chars() == ""
    part = is_unit.cast(pl.UInt32).cum_sum()
    units = frame.filter(is_unit)
    about = frame.filter(~is_unit)
    part = part.filter(~is_unit)
    names = [
        name for name in frame.columns if name not in _ABOUT and not name.startswith("device__attribute")
    ]
    european = _is_european([about[name] for name in names])
    metrics, dropped = [], []
    for name in names:
        # With instances, `12 (4; 8)`: the total comes first.
        values, bad = try_numbers(about[name].str.replace(r"\s*\(.*\)\s*$", ""), european)
        if bad is not None:
            dropped.append(name)
            continue
        of_part = [1.0, *(base_unit(unit or "") for unit in units[name].to_list())]
        metrics.append((values * pl.Series(of_part).gather(part)).alias(name))
    if dropped:
        findings.warnings.append(f"metrics that are not numbers: {', '.join(dropped)}")
    table = pl.DataFrame(metrics) if metrics else pl.DataFrame({"_": pl.Series([None] * len(about))})
    return _merge(about.select(c for c in _KEPT if c in about.columns), table, source)


def _one_row_a_metric(frame: pl.DataFrame, source: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Launches and their metrics of the other pages."""
    frame = frame.filter(pl.col("Metric Name").fill_null("") != "")
    unit = (
        frame["Metric Unit"]
        if "Metric Unit" in frame.columns
        else pl.Series([None] * len(frame), dtype=pl.String)
    )
    factors = {text: base_unit(text or "") for text in unit.unique().to_list()}
    text = frame["Metric Value"].str.replace(r"\s*\(.*\)\s*$", "")
    values, _ = try_numbers(text, _is_european([text]))
    scale = unit.replace_strict(list(factors), list(factors.values()), return_dtype=pl.Float64)
    name = frame["Metric Name"].replace(_DISPLAYED)
    keys = [c for c in ("Process ID", "ID") if c in frame.columns]
    long = frame.select(c for c in _KEPT if c in frame.columns).with_columns(
        pl.struct(keys).rank("dense").alias("launch"), name.alias("metric"), (values * scale).alias("value")
    )
    about = long.unique("launch", keep="first", maintain_order=True)
    different = long.join(about.select("launch", first="Kernel Name"), on="launch").filter(
        pl.col("Kernel Name") != pl.col("first")
    )
    if len(different):
        _refuse(different, source)
    wide = long.pivot("metric", index="launch", values="value", aggregate_function="first")
    wide = about.select("launch").join(wide, on="launch", how="left", maintain_order="left")
    return about.drop("launch", "metric", "value"), wide.drop("launch")


def _merge(about: pl.DataFrame, metrics: pl.DataFrame, source: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of the same launch, as from several passes, become one with the first value of each metric."""
    keys = [c for c in ("Process ID", "ID") if c in about.columns]
    if not about.select(keys).is_duplicated().any():
        return about, metrics
    number = about.select(pl.struct(keys).rank("dense")).to_series()
    names = pl.DataFrame({"launch": number, "Kernel Name": about["Kernel Name"], "ID": about["ID"]})
    first = names.unique("launch", keep="first").select("launch", first="Kernel Name")
    different = names.join(first, on="launch").filter(pl.col("Kernel Name") != pl.col("first"))
    if len(different):
        _refuse(different, source)
    together = metrics.with_columns(number.alias("launch"))
    merged = together.group_by("launch", maintain_order=True).agg(pl.all().drop_nulls().first())
    about = about.with_columns(number.alias("launch")).unique("launch", keep="first", maintain_order=True)
    return about.drop("launch"), merged.drop("launch")


def _refuse(different: pl.DataFrame, source: str) -> None:
    row = different.row(0, named=True)
    raise ProfileError(
        f"{source}: ID {row['ID']} is both {row['first']!r} and {row['Kernel Name']!r}; this looks like "
        f"several reports in one file: read each on its own"
    )


def _launches(about: pl.DataFrame, metrics: pl.DataFrame, source: str, findings: Findings) -> pl.DataFrame:
    if about["Kernel Name"].null_count():
        row = about["Kernel Name"].is_null().arg_max()
        raise ProfileError(f"{source}: launch {row}: no Kernel Name")
    columns = [about["Kernel Name"].alias("name")]
    for old, new in (("Grid Size", "grid"), ("Block Size", "block")):
        if old in about.columns:
            columns += [
                c.alias(f"{new}_{axis}") for c, axis in zip(triples(about[old], source), "xyz", strict=True)
            ]
        elif all(f"launch__{new}_dim_{axis}" in metrics.columns for axis in "xyz"):
            columns += [metrics[f"launch__{new}_dim_{axis}"].alias(f"{new}_{axis}") for axis in "xyz"]
        elif f"launch__{new}_size" in metrics.columns:
            ones = pl.Series([1] * len(about))
            total = metrics[f"launch__{new}_size"]
            columns += [total.alias(f"{new}_x"), ones.alias(f"{new}_y"), ones.alias(f"{new}_z")]
            findings.warnings.append(
                f"only the number of elements of the {new} is known; it is given as {new}_x"
            )
    for old, new in (("Stream", "stream"), ("Device", "device"), ("Process ID", "process")):
        if old in about.columns:
            values, bad = try_numbers(about[old])
            if bad is None:
                columns.append(values.alias(new))
    if "launch__registers_per_thread" in metrics.columns:
        columns.append(metrics["launch__registers_per_thread"].alias("registers"))
    shared = [c for c in metrics.columns if c in _SHARED]
    if shared:
        columns.append(metrics.select(pl.sum_horizontal(shared)).to_series().alias("shared_bytes"))
    duration = next((name for name in _DURATION if name in metrics.columns), None)
    if duration is not None:
        columns.append(metrics[duration].alias("duration_ns"))
    else:
        findings.warnings.append(
            "no gpu__time_duration.sum; add it with ncu --metrics gpu__time_duration.sum,…"
        )
    return pl.DataFrame(columns + [c for c in metrics.iter_columns() if c.name != "_"])


def _is_european(columns: Sequence[pl.Series]) -> bool:
    """Whether numbers have a decimal comma: some cell is `65,77`, `0,5` or `27.595.520`."""
    pattern = r"^\s*-?[\d.]*\d,(\d{1,2}|\d{4,})\s*$|^\s*-?\d{1,3}(\.\d{3}){2,}(,\d+)?\s*$"
    return any(bool(column.str.contains(pattern).any()) for column in columns)
