"""rocprofv3's JSON (`--output-format json`), and what all formats of ROCm's profilers have in common.

Source of field meanings: ROCprofiler-SDK documentation, "Output file fields". AMD counts a grid in
work-items; a Profile counts it in CTAs (workgroups).
"""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.json_arrays import JsonArrays
from simt.profile.profile import COLUMNS, COPY, Profile
from simt.profile.source import ProfileSource

_DISPATCHES, _COPIES = "kernel_dispatch", "memory_copy"
# Records that are skipped; they can far outnumber the launches.
_OTHERS = (
    "hip_api", "hsa_api", "marker_api", "rccl_api", "memory_allocation", "scratch_memory", "rocdecode_api",
    "rocjpeg_api", "pc_sample_host_trap", "pc_sample_stochastic", "counter_collection",
)  # fmt: skip
_GPU = 2  # agent type
# What a dispatch has that a Profile has not.
_OF_DISPATCHES = {
    "start", "end", "items_x", "items_y", "items_z", "dispatch", "process", "array", "agent", "kernel",
}  # fmt: skip


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


def read_rocprof_json(source: ProfileSource, process: int | None) -> Profile:
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
    return profile_of_dispatches(table, findings)


def _array(process: _Process, key: str) -> int | None:
    """Number of the array of records in the stream."""
    value = process.buffer_records.get(key)
    return value[0] if isinstance(value, list) and value and isinstance(value[0], int) else None


def _name(symbol: _Symbol) -> str:
    return kernel_name(symbol.demangled_kernel_name or symbol.formatted_kernel_name or symbol.kernel_name)


def kernel_name(name: str) -> str:
    """The name without the suffix of a kernel descriptor."""
    return name.removesuffix(" [clone .kd]").removesuffix(".kd")


def profile_of_dispatches(table: pl.DataFrame, findings: Findings) -> Profile:
    """A Profile in the order of dispatch ids; of times, if there are several processes.

    table: a row per dispatch: `start` and `end` in ns, `items_x` ... in work-items, `block_x` ...,
        `dispatch`, and further columns of a Profile.
    """
    if "items_x" in table.columns and "block_x" in table.columns:
        axes = [axis for axis in "xyz" if f"items_{axis}" in table.columns]
        table = table.with_columns(
            pl.when(pl.col(f"block_{axis}") > 0)
            .then((pl.col(f"items_{axis}") + pl.col(f"block_{axis}") - 1) // pl.col(f"block_{axis}"))
            .alias(f"grid_{axis}")
            for axis in axes
        )
    if "start" in table.columns:
        table = table.with_columns(
            pl.col("start").alias("start_ns"), (pl.col("end") - pl.col("start")).alias("duration_ns")
        )
    several = "process" in table.columns and table["process"].n_unique() > 1 and findings.process is None
    order = ("start_ns", "dispatch") if several or "dispatch" not in table.columns else ("dispatch",)
    known = ["name", *(name for name in COLUMNS if name != "name")]
    counters = [name for name in table.columns if name not in (*known, *_OF_DISPATCHES)]
    kept = [*known, "process", "dispatch", *counters]
    return assemble(table.select(c for c in kept if c in table.columns), findings, order)
