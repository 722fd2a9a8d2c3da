"""rocprofv3: JSON (`--output-format json`) and the CSV of `--kernel-trace`.

Source of field meanings: ROCprofiler-SDK documentation, "Output file fields". AMD counts a grid in
work-items; a Profile counts it in CTAs (workgroups).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.csv_table import Header, numbers, read_text, require
from simt.profile.json_arrays import JsonArrays
from simt.profile.profile import COPY, Profile
from simt.profile.source import Source

_DISPATCHES, _COPIES = "kernel_dispatch", "memory_copy"
# Records that are skipped; they can far outnumber the launches.
_OTHERS = (
    "hip_api", "hsa_api", "marker_api", "rccl_api", "memory_allocation", "scratch_memory", "rocdecode_api",
    "rocjpeg_api", "pc_sample_host_trap", "pc_sample_stochastic", "counter_collection",
)  # fmt: skip
_GPU = 2  # agent type


class _Handle(msgspec.Struct, gc=False):
    handle: int


class _Dim(msgspec.Struct, gc=False):
    x: int
    y: int
    z: int


class _Info(msgspec.Struct, gc=False):
    agent_id: _Handle
    kernel_id: int
    dispatch_id: int
    workgroup_size: _Dim
    grid_size: _Dim
    queue_id: _Handle | None = None
    group_segment_size: int = 0


class _Dispatch(msgspec.Struct, gc=False):
    start_timestamp: int
    end_timestamp: int
    dispatch_info: _Info
    stream_id: _Handle | None = None


class _Copy(msgspec.Struct, gc=False):
    start_timestamp: int
    end_timestamp: int


class _Symbol(msgspec.Struct):
    kernel_id: int
    kernel_name: str = ""
    demangled_kernel_name: str = ""
    formatted_kernel_name: str = ""
    arch_vgpr_count: int = 0
    accum_vgpr_count: int = 0


class _Agent(msgspec.Struct):
    id: _Handle
    type: int
    name: str = ""
    product_name: str = ""
    logical_node_type_id: int = 0


class _Metadata(msgspec.Struct):
    pid: int = 0


class _Process(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    agents: list[_Agent] = []
    kernel_symbols: list[_Symbol] = []
    buffer_records: dict[str, Any] = {}


class _Rest(msgspec.Struct):
    processes: list[_Process] = msgspec.field(name="rocprofiler-sdk-tool")


def is_rocprof_header(names: Sequence[str]) -> bool:
    return {"Kernel_Name", "Start_Timestamp", "End_Timestamp"}.issubset(names)


def read_rocprof_json(source: Source, process: int | None) -> Profile:
    """Kernel dispatches in the order of their ids (by time, if there are several processes).

    Raises ProfileError if the file is not such a record, is damaged, or ends too early.
    """
    stream = JsonArrays(source, (_DISPATCHES, _COPIES, *_OTHERS))
    dispatches = msgspec.json.Decoder(list[_Dispatch])
    copies = msgspec.json.Decoder(list[_Copy])
    parts: list[pl.DataFrame] = []
    copied: dict[int, tuple[int, float]] = {}
    for batch in stream:
        if batch.key == _DISPATCHES:
            try:
                parts.append(_frame(stream.decode(batch, dispatches), batch.array))
            except OverflowError as error:
                raise ProfileError(f"{source.name}: from byte {batch.offset} on: {error}") from error
        elif batch.key == _COPIES:
            records = stream.decode(batch, copies)
            number, ns = copied.get(batch.array, (0, 0.0))
            ns += sum(record.end_timestamp - record.start_timestamp for record in records)
            copied[batch.array] = number + len(records), ns
    rest = stream.decode_rest(_Rest)
    return _profile(rest.processes, parts, copied, Findings(source.name, process=process))


def _frame(records: list[_Dispatch], of: int) -> pl.DataFrame:
    rows = [
        (
            of, d.start_timestamp, d.end_timestamp, i.agent_id.handle, i.kernel_id, i.dispatch_id,
            i.workgroup_size.x, i.workgroup_size.y, i.workgroup_size.z,
            i.grid_size.x, i.grid_size.y, i.grid_size.z, i.group_segment_size,
            d.stream_id.handle if d.stream_id else i.queue_id.handle if i.queue_id else None,
        )
        for d in records
        for i in (d.dispatch_info,)
    ]  # fmt: skip
    names = (
        "array", "start", "end", "agent", "kernel", "dispatch", "block_x", "block_y", "block_z",
        "items_x", "items_y", "items_z", "shared_bytes", "stream",
    )  # fmt: skip
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")


def _profile(
    processes: list[_Process],
    parts: list[pl.DataFrame],
    copied: dict[int, tuple[int, float]],
    findings: Findings,
) -> Profile:
    frames = []
    gpus: set[str] = set()
    for found in processes:
        pid = found.metadata.pid
        if (copies := _array(found, _COPIES)) in copied and findings.process in (None, pid):
            findings.left_out.append((COPY, *copied[copies]))
        mine = [part for part in parts if part["array"][0] == _array(found, _DISPATCHES)]
        if not mine:
            continue
        frame = pl.concat(mine)
        symbols = pl.DataFrame(
            [(s.kernel_id, _name(s), s.arch_vgpr_count + s.accum_vgpr_count) for s in found.kernel_symbols],
            schema={"kernel": pl.Int64, "name": pl.String, "registers": pl.Int64},
            orient="row",
        ).unique("kernel", keep="first")
        agents = {a.id.handle: a for a in found.agents if a.type == _GPU}
        gpus |= {agents[h].product_name or agents[h].name for h in frame["agent"].unique() if h in agents}
        device = {handle: agent.logical_node_type_id for handle, agent in agents.items()}
        frame = frame.join(symbols, on="kernel", how="left", maintain_order="left").with_columns(
            pl.col("agent").replace_strict(device, default=None, return_dtype=pl.Int64).alias("device"),
            pl.lit(pid).alias("process"),
        )
        unknown = frame.filter(pl.col("name").is_null())
        if len(unknown):
            raise ProfileError(
                f"{findings.source}: dispatch {unknown['dispatch'][0]}: kernel {unknown['kernel'][0]} is not "
                f"among the kernel_symbols"
            )
        frames.append(frame)
    if not frames:
        raise ProfileError(
            f"{findings.source}: no kernel_dispatch records; run rocprofv3 with --kernel-trace"
        )
    table = pl.concat(frames)
    gpus.discard("")
    findings.gpu = gpus.pop() if len(gpus) == 1 else None
    return _assemble(table, findings)


def _array(process: _Process, key: str) -> int | None:
    """Number of the array of records in the stream."""
    value = process.buffer_records.get(key)
    return value[0] if isinstance(value, list) and value and isinstance(value[0], int) else None


def _name(symbol: _Symbol) -> str:
    name = symbol.demangled_kernel_name or symbol.formatted_kernel_name or symbol.kernel_name
    return name.removesuffix(" [clone .kd]").removesuffix(".kd")


def read_rocprof_csv(source: Source, process: int | None, header: Header) -> Profile:
    """One row per dispatch. Raises ProfileError if a cell is not a number or a column is missing."""
    frame = read_text(source, header)
    sizes = [f"{what}_Size_{axis}" for what in ("Workgroup", "Grid") for axis in "XYZ"]
    require(frame, ["Kernel_Name", "Start_Timestamp", "End_Timestamp", *sizes], source.name)
    if "Kind" in frame.columns:
        frame = frame.filter(pl.col("Kind").fill_null("KERNEL_DISPATCH") == "KERNEL_DISPATCH")

    def number(name: str) -> pl.Series:
        # Timestamps are integers that a float64 does not hold.
        exact: pl.Series = frame[name].str.strip_chars().cast(pl.Int64, strict=False)
        if exact.null_count():
            exact = numbers(frame[name], source.name).cast(pl.Int64, strict=False)
        return exact

    columns = {
        "start": number("Start_Timestamp"),
        "end": number("End_Timestamp"),
        **{f"block_{axis}": number(f"Workgroup_Size_{axis.upper()}") for axis in "xyz"},
        **{f"items_{axis}": number(f"Grid_Size_{axis.upper()}") for axis in "xyz"},
    }
    for new, choices in (
        ("shared_bytes", ("LDS_Block_Size", "Group_Segment_Size")),
        ("stream", ("Stream_Id", "Queue_Id")),
        ("dispatch", ("Dispatch_Id",)),
        ("process", ("Process_Id",)),
    ):
        old = next((name for name in choices if name in frame.columns), None)
        if old is not None:
            columns[new] = number(old)
    vector = [
        number(name).fill_null(0) for name in ("VGPR_Count", "Accum_VGPR_Count") if name in frame.columns
    ]
    if vector:
        columns["registers"] = sum(vector[1:], vector[0])
    if "Agent_Id" in frame.columns:
        columns["device"] = frame["Agent_Id"].str.extract(r"(\d+)\s*$").cast(pl.Int64, strict=False)
    name = frame["Kernel_Name"].str.replace(r"(?: \[clone \.kd\]|\.kd)$", "").alias("name")
    table = pl.DataFrame([name, *(series.alias(column) for column, series in columns.items())])
    return _assemble(table, Findings(source.name, process=process))


def _assemble(table: pl.DataFrame, findings: Findings) -> Profile:
    grid = [
        pl.when(pl.col(f"block_{axis}") > 0)
        .then((pl.col(f"items_{axis}") + pl.col(f"block_{axis}") - 1) // pl.col(f"block_{axis}"))
        .alias(f"grid_{axis}")
        for axis in "xyz"
    ]
    table = table.with_columns(
        pl.col("start").alias("start_ns"), (pl.col("end") - pl.col("start")).alias("duration_ns"), *grid
    )
    kept = (
        "name", "start_ns", "duration_ns", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",
        "registers", "shared_bytes", "stream", "device", "process", "dispatch",
    )  # fmt: skip
    several = "process" in table.columns and table["process"].n_unique() > 1 and findings.process is None
    order = ("start_ns", "dispatch") if several or "dispatch" not in table.columns else ("dispatch",)
    return assemble(table.select(c for c in kept if c in table.columns), findings, order)
