"""Compares simt with Accel-Sim's own results, row by row.

The reference rows (../shared/data/traces/accelsim-reference.csv, or a file of the same form given as
argument) hold Accel-Sim's cycles for real and synthetic traces with stock configurations. Prints, for every
row, both numbers and the error of the cycles after launch latency; then the mean and the largest error.

    python benchmarks/conformance.py [REFERENCE.csv] [--only TEXT] [--threads N] [--set FIELD=VALUE]
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from simt import _engine
from simt.spec import load_spec
from simt.trace import Copy, open_trace

SHARED = Path(__file__).resolve().parents[2] / "shared"
GPUS = {
    "QV100": "qv100-accelsim",
    "QV100_UDP": "qv100-accelsim",
    "RTX3070": "rtx3070-accelsim",
    "TITANX": "titanx-accelsim",
    "RTX2060": "rtx2060-accelsim",
    "A100": "a100-accelsim",
    "KEPLER_TITAN": "titan-accelsim",
}
CHAIN = {
    "mov (IADD3)": "mov",
    "lds8 (8-way conflict)": "lds8",
    "ldg_l1 (hit)": "ldg_l1",
    "ldg_l2 (hit)": "ldg_l2",
}


@dataclass
class Run:
    """What one simulation gave, summed over its launches."""

    cycles: int
    launch_latency: int
    warp_instructions: int
    thread_instructions: int
    l2_read_hits: int
    l2_reads: int
    dram_reads: int
    dram_writes: int


def simulate(trace: Path, gpu: str, values: dict[str, object], threads: int = 1) -> Run:
    """Runs a trace folder on a specification, with other values, through the engine."""
    spec = load_spec(gpu, values)
    engine = _engine.Gpu(spec.native(), threads=threads)
    for command in open_trace(trace).commands:
        if isinstance(command, Copy):
            engine.copy_from_host(command.address, command.bytes)
        else:
            engine.launch(command.source(), command.id)
    engine.run(1 << 60)
    launches = [{**x, **x["code"].parts(x["numbers"])} for x in engine.finished()]
    reads = [x["l2"][kind] for x in launches for kind in ("global_read", "atomic", "local_read")]
    return Run(
        cycles=sum(x["end_cycle"] - x["start_cycle"] for x in launches),
        launch_latency=sum(x["launch_latency"] for x in launches),
        warp_instructions=sum(x["engine"]["warp_instructions"] for x in launches),
        thread_instructions=sum(x["engine"]["thread_instructions"] for x in launches),
        l2_read_hits=sum(r["hit"] for r in reads),
        l2_reads=sum(r["hit"] + r["hit_reserved"] + r["miss"] + r["sector_miss"] for r in reads),
        dram_reads=sum(x["engine"]["dram_reads"] for x in launches),
        dram_writes=sum(x["engine"]["dram_writes"] for x in launches),
    )


def generated(scratch: Path, tool: str, arguments: list[str]) -> Path:
    """A trace folder written by one of the shared generators, kept for the next row that wants it."""
    key = hashlib.sha256(" ".join([tool, *arguments]).encode()).hexdigest()[:16]
    folder = scratch / key
    if not (folder / "kernelslist.g").exists():
        subprocess.run([sys.executable, SHARED / "tools" / tool, folder, *arguments], check=True)
    return folder


def with_sm_version(scratch: Path, folder: Path, version: int) -> Path:
    """A copy of a trace folder whose headers declare another SM version, as the reference runs needed it."""
    copy = scratch / f"{folder.name}-sm{version}"
    if not copy.exists():
        copy.mkdir(parents=True)
        for file in folder.iterdir():
            if file.name.endswith(".traceg"):
                text = re.sub(r"-binary version = \d+", f"-binary version = {version}", file.read_text())
                if version == 80:
                    text = text.replace(" VIADD ", " IADD3 ")
                (copy / file.name).write_text(text)
            elif file.name == "kernelslist.g":
                (copy / file.name).write_bytes(file.read_bytes())
    return copy


def trace_of(row: dict[str, str], scratch: Path) -> Path:
    """The trace folder of a reference row."""
    name = row["trace"]
    if row["kind"] == "trace":
        folder = SHARED / "data" / "traces" / name
        return with_sm_version(scratch, folder, 80) if "sm90" in name else folder
    tool = {"synthetic": "synthetic-trace", "pattern": "kernel-trace", "chainw": "chain-trace"}[row["kind"]]
    folder = generated(scratch, tool, name.split())
    return with_sm_version(scratch, folder, 61) if row["config"] == "TITANX" else folder


def chain_slope(kind: str, gpu: str, values: dict[str, object], scratch: Path) -> float:
    """Cycles per instruction between chains of 100 and 300 of one warp."""
    cycles = [
        simulate(generated(scratch, "chain-trace", [kind, str(n)]), gpu, values).cycles for n in (100, 300)
    ]
    return (cycles[1] - cycles[0]) / 200


def value_of(text: str) -> tuple[str, object]:
    """The field and the value of FIELD=VALUE."""
    field, _, value = text.partition("=")
    try:
        return field, json.loads(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected FIELD=VALUE, the value as JSON") from None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "reference", nargs="?", type=Path, default=SHARED / "data/traces/accelsim-reference.csv"
    )
    parser.add_argument("--only", default="", help="rows whose kind, trace or configuration contain this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], type=value_of, metavar="FIELD=VALUE")
    options = parser.parse_args()
    given = dict(options.set)
    if not options.reference.exists():
        sys.exit(f"{options.reference}: the reference is not here; it comes with the shared data")
    scratch = Path(tempfile.gettempdir()) / "simt-conformance"
    errors: list[float] = []
    with options.reference.open() as file:
        rows = [r for r in csv.DictReader(file) if options.only in f"{r['kind']} {r['trace']} {r['config']}"]
    for row in rows:
        gpu = GPUS[row["config"]]
        label = f"{row['kind']:9} {row['trace']:48} {row['config']:9} fix={row['memcpy_fix']}"
        if row["kind"] == "chain":
            kind = CHAIN.get(row["trace"], row["trace"].split(" ")[0])
            slope = chain_slope(kind, gpu, given, scratch)
            print(
                f"{label}  {float(row['cycles']):9.3f} {slope:9.3f}  {slope - float(row['cycles']):+.3f}",
                flush=True,
            )
            continue
        values = {"l2.copies_fill": row["memcpy_fix"] == "1", **given}
        run = simulate(trace_of(row, scratch), gpu, values, options.threads)
        expected = int(float(row["cycles"]))
        after = expected - run.launch_latency
        error = (run.cycles - expected) / after * 100
        errors.append(error)
        differing = [
            f"{field} {row[field]} {getattr(run, field)}"
            for field in (
                "warp_instructions",
                "thread_instructions",
                "l2_reads",
                "l2_read_hits",
                "dram_reads",
                "dram_writes",
            )
            if row[field] and int(row[field]) != getattr(run, field)
        ]
        print(f"{label}  {expected:9} {run.cycles:9}  {error:+6.2f}%  {'; '.join(differing)}", flush=True)
    if errors:
        absolute = [abs(e) for e in errors]
        print(
            f"cycles after launch latency: mean error {sum(absolute) / len(absolute):.2f} %, largest "
            f"{max(absolute):.2f} %"
        )


if __name__ == "__main__":
    main()
