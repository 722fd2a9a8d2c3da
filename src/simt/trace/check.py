"""Reads a trace from beginning to end and reports what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from simt import _engine
from simt.errors import TraceError
from simt.isa import table_for

from . import regroup, store, streams
from .trace import TraceKernel, open_trace

_OF_DATA = (_engine.MemorySpace.Global, _engine.MemorySpace.Generic)


@dataclass
class KernelReport:
    """The result of checking one kernel of a trace.

    counts: ctas, empty_ctas, warps, empty_warps, instructions.
    problem: why the kernel cannot be read, or None.
    notes: unusual properties, and how they are simulated.
    """

    path: Path
    id: int = 0
    name: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    problem: str | None = None
    notes: list[str] = field(default_factory=list)


def check_trace(
    path: str | os.PathLike[str],
    on_kernel: Callable[[KernelReport], None] | None = None,
    outside: bool = False,
) -> tuple[list[KernelReport], list[str]]:
    """Checks every kernel of a trace and returns the reports, and the warnings about the launch list.

    on_kernel: called with each report as soon as it is complete.
    outside: as in `open_trace`.

    Raises TraceError if the trace itself cannot be opened.
    """
    trace = open_trace(path, outside)
    reports = []
    for kernel in trace.kernels:
        report = KernelReport(kernel.path)
        try:
            _check(kernel, report)
        except TraceError as error:
            report.problem = str(error)
        reports.append(report)
        if on_kernel is not None:
            on_kernel(report)
    return reports, trace.warnings


def _check(kernel: TraceKernel, report: KernelReport) -> None:
    report.id, report.name = kernel.id, kernel.name
    table, warning = table_for(kernel.sm_version)
    if warning:
        report.notes.append(warning)
    if store.is_store(kernel.path):
        reader, summary = kernel.stored()
        report.counts = dict(summary.counts)
        source = reader.source(summary, table.native)
        try:
            with streams.naming(kernel.path):
                found, _, nulls = source.walk(True)
        except MemoryError:
            reader.damaged("it declares more than fits into the host's memory")
        if found != report.counts["instructions"]:
            reader.damaged(f"{found} instructions, {report.counts['instructions']} are announced")
    else:
        source, nulls = _read_text(kernel.path, report, table.native)
    _note_counts(kernel, report)
    _note_nulls(source, nulls, report)
    report.notes += [f"opcode {o} is unknown; simulated as {n}" for o, n in source.unknown_opcodes.items()]


def _read_text(
    path: Path, report: KernelReport, table: _engine.OpcodeTable
) -> tuple[_engine.TraceSource, dict[int, int]]:
    """The static instructions, and how often each accesses the first page of memory."""
    converter = _engine.TraceConverter()
    for window, _ in regroup.grouped_windows(path):
        with streams.naming(path):
            converter.feed(window)
        converter.take_blocks()
    with streams.naming(path):
        converter.finish()
    report.counts = {name: getattr(converter.counts, name) for name in store.COUNT_FIELDS}
    # Only the static instructions are needed: a source without CTAs.
    source = _engine.TraceSource(
        converter.launch, converter.opcodes, converter.instructions, [], 0, table, lambda _: b""
    )
    return source, converter.null_accesses


def _note_nulls(source: _engine.TraceSource, nulls: dict[int, int], report: KernelReport) -> None:
    """Notes accesses of global memory whose addresses the tracer did not record."""
    instructions = source.instructions()
    counts: dict[str, int] = {}
    for index, number in nulls.items():
        if instructions[index]["space"] in _OF_DATA:
            opcode = instructions[index]["opcode"]
            counts[opcode] = counts.get(opcode, 0) + number
    if counts:
        report.notes.append(
            f"{sum(counts.values())} accesses of global memory have null addresses "
            f"({', '.join(f'{opcode}: {number}' for opcode, number in counts.items())}): the tracer did not "
            "record them; they all hit the same line, so cycles and misses are too low. Trace it again"
        )


def _note_counts(kernel: TraceKernel, report: KernelReport) -> None:
    counts = report.counts
    x, y, z = kernel.grid
    missing = x * y * z - counts["ctas"] - counts["empty_ctas"]
    for number, text in (
        (counts["empty_ctas"], "thread blocks without instructions; they are left out"),
        (counts["empty_warps"], "warps without instructions; they are left out"),
        (missing, f"of the grid's {x * y * z} thread blocks are not in the trace"),
        (-missing, "thread blocks more than the grid has"),
    ):
        if number > 0:
            report.notes.append(f"{number} {text}")
