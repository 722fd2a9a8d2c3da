"""Speed of one build against another's: both take turns at each kernel, on one thread; medians of the ratios.

python benchmarks/two_builds.py BEFORE AFTER [--pairs 10] [--rows ROW,ROW]

BEFORE, AFTER: folders in which simt is installed, with its engine; in the checkout of each, for example:
`pip install --no-deps --target BEFORE .`. Times are processor time. A row also says whether the cycles and
counters that both builds have are equal.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LANES = range(32)
A, B, C = 0x7F0000000000, 0x7F0010000000, 0x7F0020000000
KIB, MIB = 1 << 10, 1 << 20

# Kernels of kernels.py, kernels of this file, executed kernels, and addresses for the memory system alone.
GPUS = ("qv100-accelsim", "qv100")
SPEED_ROWS = [f"{kind} {gpu}" for gpu in GPUS for kind in ("streaming", "gemm", "ffma")]
TRACE_ROWS = ["gather4", "gather64", "atomics", "spmv", "bfs"]
EXECUTED_ROWS = ["executed saxpy", "executed sgemm_tiled"]
MEMORY_ROWS = ["l2-hits", "dram-streaming", "dram-random"]


# In the parent: traces, which both builds read.


def _write(kind: str, body: Callable[[Any, int, int], None], ctas: int) -> Path:
    """The folder of a kernel with CTAs of 256 threads, written once."""
    from simt.trace.writer import KernelWriter, LaunchShape, Warp

    folder = Path(tempfile.gettempdir()) / "simt-benchmarks" / kind
    if not (folder / "kernelslist.g").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shape = LaunchShape(kind, (ctas, 1, 1), (256, 1, 1), 70, 0, 32)
        with KernelWriter(folder / "kernel-1.traceg", shape) as out:
            for cta in range(ctas):
                warps = [Warp() for _ in range(8)]
                for number, warp in enumerate(warps):
                    body(warp, cta, number)
                    warp.op("EXIT")
                out.cta((cta, 0, 0), warps)
        (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
    return folder


def _gather(size: int) -> Callable[[Any, int, int], None]:
    rng = random.Random(0)

    def body(warp: Any, cta: int, number: int) -> None:
        for i in range(8):
            warp.memory("LDG.E.SYS", [A + 4 * rng.randrange(size // 4) for _ in LANES], 4, 8 + i, (4,))
            warp.op("FADD", 20, (20, 8 + i))

    return body


def _atomics(warp: Any, cta: int, number: int) -> None:
    """A histogram of 64 bins."""
    rng = random.Random(cta * 8 + number)
    for _ in range(8):
        warp.memory("RED.E.ADD.STRONG.GPU", [A + 4 * rng.randrange(64) for _ in LANES], 4, None, (4, 6))
        warp.op("IADD3", 6, (6, 255))


def _spmv(warp: Any, cta: int, number: int) -> None:
    """A row for each thread: columns and values side by side, x at random."""
    rng = random.Random(cta * 8 + number)
    first = (cta * 256 + number * 32) * 4
    for k in range(6):
        along = [first + 4 * i + k * 256 * KIB for i in LANES]
        warp.memory("LDG.E.SYS", [A + at for at in along], 4, 8, (4,))
        warp.memory("LDG.E.SYS", [B + at for at in along], 4, 9, (5,))
        warp.memory("LDG.E.SYS", [C + 4 * rng.randrange(MIB // 4) for _ in LANES], 4, 10, (8,))
        warp.op("FFMA", 11, (9, 10, 11))
    warp.memory("STG.E.SYS", [C + 64 * MIB + first + 4 * i for i in LANES], 4, None, (6, 11))


def _bfs(warp: Any, cta: int, number: int) -> None:
    """A step of a breadth-first search: a quarter of a warp's threads have a vertex."""
    rng = random.Random(cta * 8 + number)
    first = (cta * 256 + number * 32) * 4
    warp.memory("LDG.E.U8.SYS", [A + first // 4 + i for i in LANES], 1, 4, (2,))
    warp.op("ISETP.NE.AND", None, (4,))
    active = rng.sample(LANES, 8)
    mask = sum(1 << i for i in active)

    def anywhere(base: int, size: int, width: int) -> list[int | None]:
        return [base + width * rng.randrange(size // width) if i in active else None for i in LANES]

    start = warp.pc
    for _ in range(rng.randrange(2, 10)):
        warp.pc = start
        warp.memory("LDG.E.SYS", anywhere(B, 8 * MIB, 4), 4, 8, (4,))
        warp.memory("LDG.E.U8.SYS", anywhere(C, MIB, 1), 1, 9, (8,))
        warp.op("ISETP.EQ.AND", None, (9,), mask=mask)
        warp.memory("STG.E.SYS", anywhere(C + 4 * MIB, 4 * MIB, 4), 4, None, (8, 10))
        warp.op("IADD3", 3, (3, 255), mask=mask)
        warp.op("BRA", mask=mask)


def write_traces(rows: list[str]) -> dict[str, str]:
    """Folder of the trace of each row that has one."""
    from kernels import kernel

    bodies: dict[str, tuple[Callable[[Any, int, int], None], int]] = {
        "gather4": (_gather(4 * MIB), 160),
        "gather64": (_gather(64 * MIB), 160),
        "atomics": (_atomics, 320),
        "spmv": (_spmv, 320),
        "bfs": (_bfs, 480),
    }
    return {
        row: str(_write(row, *bodies[row]) if row in bodies else kernel(row.split()[0]))
        for row in rows
        if row not in MEMORY_ROWS + EXECUTED_ROWS
    }


# In a worker: one build.


def run_trace(gpu: str, folder: str) -> tuple[float, dict[str, Any]]:
    """Processor seconds of the engine; cycles and counters."""
    from simt import _engine
    from simt.spec import load_spec
    from simt.trace import open_trace

    engine = _engine.Gpu(load_spec(gpu).native(), 1)
    trace = open_trace(Path(folder))
    for command in trace.commands:
        engine.launch(command.source(), command.id)
    begin = time.process_time()
    engine.run(1 << 60)
    seconds = time.process_time() - begin
    record: dict[str, Any] = dict(engine.finished()[0])
    # Builds before 30 November 2026 do not pack the counters.
    counters = record.get("counters") or record["code"].parts(record["numbers"])["engine"]
    return seconds, {"cycles": record["end_cycle"] - record["start_cycle"], **counters}


def run_executed(row: str) -> tuple[float, dict[str, Any]]:
    """As run_trace(), of a kernel in CUDA C++ that is executed; functional execution counts as well."""
    import simt

    side = 384
    gpu = simt.GPU("qv100-accelsim")
    module = gpu.compile(Path(__file__).with_name("functional_kernels.cu").read_text())
    given = [gpu.array([float(k)] * side * side) for k in range(3)]

    def launch() -> None:
        if row == "executed saxpy":
            module.saxpy[side * side // 256, 256](given[0], given[1], 2.0, side * side)
        else:
            module.sgemm_tiled[(side // 16, side // 16), (16, 16)](*given, side)

    launch()  # translates the kernel
    begin = time.process_time()
    launch()
    return time.process_time() - begin, {"cycles": gpu.launches[1].cycles}


def run_memory(row: str) -> tuple[float, dict[str, Any]]:
    """As run_trace(), of the memory system alone: every SM sends a sector a cycle."""
    from memory_system import Sectors

    sectors = Sectors(row)
    replies = sectors.run()
    return sectors.memory.seconds(), {str(i): list(reply) for i, reply in enumerate(replies)}


def work() -> None:
    import simt._engine

    folders = json.loads(sys.stdin.readline())
    print(simt._engine.__file__, flush=True)
    for line in sys.stdin:
        row = line.strip()
        gpu = row.split()[1] if row in SPEED_ROWS else "qv100-accelsim"
        if row in MEMORY_ROWS:
            result = run_memory(row)
        elif row in EXECUTED_ROWS:
            result = run_executed(row)
        else:
            result = run_trace(gpu, folders[row])
        print(json.dumps(result), flush=True)


class Build:
    """A process that runs rows with the package in `path`."""

    def __init__(self, path: Path, folders: dict[str, str]) -> None:
        # -S: the hook of an editable installation would come before any path, and be both builds.
        places = [str(path.resolve()), *(place for place in sys.path if place)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
        self.process = subprocess.Popen(
            [sys.executable, "-S", __file__, "--work"],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.send(json.dumps(folders))
        assert self.process.stdout is not None
        loaded = self.process.stdout.readline().strip()
        if not Path(loaded).is_relative_to(path.resolve()):
            self.process.terminate()
            sys.exit(f"{path}: simt with its engine is not installed there (found {loaded or 'none'})")

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def run(self, row: str) -> tuple[float, dict[str, Any]]:
        assert self.process.stdout is not None
        self.send(row)
        seconds, results = json.loads(self.process.stdout.readline())
        return seconds, results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--rows", default=",".join([*SPEED_ROWS, *TRACE_ROWS, *EXECUTED_ROWS, *MEMORY_ROWS]))
    arguments = parser.parse_args()
    rows = arguments.rows.split(",")
    folders = write_traces(rows)
    builds = Build(arguments.reference, folders), Build(arguments.build, folders)
    for row in rows:
        ratios, differences = [], set()
        for pair in range(arguments.pairs):
            order = builds if pair % 2 == 0 else builds[::-1]
            of = {build: build.run(row) for build in order}
            (reference, before), (ours, after) = of[builds[0]], of[builds[1]]
            ratios.append(reference / ours)
            # A counter that only one of the builds has is no difference.
            differences |= {name for name in before.keys() & after.keys() if before[name] != after[name]}
        same = f"{len(differences)} results differ" if differences else "same results"
        print(
            f"{row:26} {statistics.median(ratios):5.2f} ({min(ratios):.2f} to {max(ratios):.2f}), "
            f"{1e3 * reference:6.0f} and {1e3 * ours:6.0f} ms in the last pair, {same}",
            flush=True,
        )


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--work"] else main()
