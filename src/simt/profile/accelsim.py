"""Reads the files of Accel-Sim's tools: the tracer's `stats.csv`, launch lists, and the tables of
get_stats.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.csv_table import Header, numbers, read_text, require
from simt.profile.profile import Profile
from simt.profile.source import ProfileSource

_DIVISION = "-" * 20  # get_stats.py writes 100
_STATS = {
    "grid_dimX": "grid_x", "grid_dimY": "grid_y", "grid_dimZ": "grid_z",
    "block_dimX": "block_x", "block_dimY": "block_y", "block_dimZ": "block_z",
    "stream_id": "stream", "device_id": "device",
    "total_insts": "smsp__inst_executed.sum",
}  # fmt: skip
# A statistic of get_stats.py begins with what the simulator prints, followed by a regular expression.
_COUNTERS = (
    ("gpu_tot_sim_cycle", "gpc__cycles_elapsed.max"),
    ("gpu_tot_sim_insn", "smsp__thread_inst_executed.sum"),
    ("gpu_sim_cycle", "gpc__cycles_elapsed.max"),
    ("gpu_sim_insn", "smsp__thread_inst_executed.sum"),
    ("gpgpu_n_tot_w_icount", "smsp__inst_executed.sum"),
)


def is_tracer_stats_header(names: Sequence[str]) -> bool:
    return {"kernel id", "kernel mangled name"}.issubset(names)


def is_get_stats_header(names: Sequence[str]) -> bool:
    return bool(names) and names[0].startswith(_DIVISION) and not any(names[1:])


def read_tracer_stats(source: ProfileSource, process: int | None, header: Header) -> Profile:
    """One row per traced launch: its size and its warp instructions. The tracer measures no time.

    Raises ProfileError if a cell is not a number or a column is missing.
    """
    frame = read_text(source, header)
    require(frame, ["kernel mangled name", "grid_dimX", "block_dimX"], source.name)
    columns = [frame["kernel mangled name"].str.strip_chars().alias("name")]
    columns += [
        numbers(frame[old], source.name).alias(new) for old, new in _STATS.items() if old in frame.columns
    ]
    findings = Findings(source.name, process=process)
    findings.warnings.append("a tracer's stats.csv has no times")
    return assemble(pl.DataFrame(columns), findings, ())


def read_traces(path: Path, process: int | None) -> Profile:
    """The launches of a launch list (kernelslist.g), a kernel trace or a trace store, from their headers.

    Raises ProfileError or TraceError.
    """
    try:
        from simt.trace import open_trace
    except ImportError as error:
        raise ProfileError(
            f"{path}: traces are read by simt's engine, which is not installed: {error}"
        ) from error
    trace = open_trace(path)
    rows: list[dict[str, Any]] = []
    for kernel in trace.kernels:
        rows.append(
            {
                "name": kernel.name,
                **dict(zip(("grid_x", "grid_y", "grid_z"), kernel.grid, strict=True)),
                **dict(zip(("block_x", "block_y", "block_z"), kernel.block, strict=True)),
                "registers": kernel.registers,
                "shared_bytes": kernel.shared_bytes,
                # A stream's handle may be an address of 64 bits.
                "stream": kernel.stream - (1 << 64) if kernel.stream >= 1 << 63 else kernel.stream,
            }
        )
    if not rows:
        raise ProfileError(f"{path}: no kernels in this launch list")
    findings = Findings(str(path), process=process, warnings=[*trace.warnings, "traces have no times"])
    return assemble(pl.DataFrame(rows, infer_schema_length=None), findings, ())


def read_get_stats(source: ProfileSource, process: int | None, header: Header) -> Profile:
    """Reads the tables of get_stats.py, one per statistic, from a run with -k or -K: a row (or, with -R, a
    column) per kernel.

    Raises ProfileError if a table is truncated, or if the file has only totals of programs.
    """
    tables, configurations = _tables(source)
    findings = Findings(source.name, process=process)
    if len(configurations) > 1:
        findings.warnings.append(
            f"{len(configurations)} configurations; only the first, {configurations[0]}, is read"
        )
    labels: dict[str, None] = {}
    for table in tables.values():
        labels |= dict.fromkeys(
            label for label in table if not label.endswith(("--all_kernels", "--final_kernel"))
        )
    if not labels:
        raise ProfileError(
            f"{source.name}: totals of whole programs, expected statistics per kernel: get_stats.py -k -K"
        )
    names = [label.split("--")[1] if "--" in label else label for label in labels]
    columns = [pl.Series("name", names)]
    for statistic, table in tables.items():
        if not any(label in table for label in labels):
            continue
        counter = next((new for old, new in _COUNTERS if statistic.startswith(old)), statistic)
        text = pl.Series(counter, [table.get(label) for label in labels], pl.String)
        if counter not in [c.name for c in columns]:
            columns.append(numbers(text, source.name))
    findings.warnings.append("simulated cycles only; times need a clock")
    return assemble(pl.DataFrame(columns), findings, ())


def _tables(source: ProfileSource) -> tuple[dict[str, dict[str, str]], list[str]]:
    """For each statistic the first configuration's value of each label, and the configurations' names."""
    tables: dict[str, dict[str, str]] = {}
    configurations: list[str] = []
    statistic, header = "", list[str]()
    state = "outside"
    for number, line in enumerate(_lines(source), start=1):
        cells = [cell.strip() for cell in line.rstrip(",").split(",")]
        if line.startswith(_DIVISION):
            state = "statistic"
        elif state == "statistic" and line.strip():
            statistic, state = line.rstrip(",").strip(), "header"
            tables[statistic] = {}
        elif state == "header":
            header, state = cells, "rows"
            if header[0] != "CFG" and not configurations:
                configurations = header[1:]
        elif state == "rows" and line.strip():
            if header[0] == "CFG":
                if cells[0] not in configurations:
                    configurations.append(cells[0])
                pairs = zip(header[1:], cells[1:], strict=False) if cells[0] == configurations[0] else ()
                tables[statistic] |= dict(pairs)
            else:
                # A demangled name may have commas of its own: values are the last cells.
                width = max(len(header) - 1, 1)
                if len(cells) <= width:
                    raise ProfileError(
                        f"{source.name}: line {number}: found {line[:60]!r}, expected {width} values"
                    )
                tables[statistic][",".join(cells[:-width])] = cells[-width]
    return tables, configurations


def _lines(source: ProfileSource) -> Iterator[str]:
    rest = b""
    for piece in source.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > 1 << 26:
            raise ProfileError(f"{source.name}: a line of more than 64 MiB; this is not a table")
        yield from (line.decode("utf-8", "replace").rstrip("\r") for line in lines)
    yield rest.decode("utf-8", "replace")
