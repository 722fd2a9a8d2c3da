"""Executed programs: speed without timing, with it against the same kernel from a trace, and memory.

python benchmarks/functional.py [--code sass] [--check] [KERNEL ...]

Speed is thread instructions (of PTX, or of machine code) a second of processor time, which other processes
disturb less than the wall clock does. Of machine code, it is also given relative to that of PTX, and
so is the time that the kernel takes. With --check, only what `simt check` costs: processor time relative to
that without, in turns, and its memory relative to the device memory that the kernel touches.
"""

from __future__ import annotations

import argparse
import math
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

import simt
from simt.gpu import DeviceArray, Module
from simt.options import Code

SOURCE = Path(__file__).with_name("functional_kernels.cu").read_text()


@dataclass(frozen=True)
class Case:
    """target: millions of thread instructions a second with one thread. n: elements, or side of a matrix.
    timed_n: the same for the runs with timing."""

    target: int
    n: int
    timed_n: int
    launch: Callable[[Module, list[DeviceArray], int], object]
    square: bool = False


CASES = {
    "vecadd": Case(400, 1 << 21, 1 << 19, lambda m, x, n: m.vecadd[n // 256, 256](*x, n)),
    "saxpy": Case(400, 1 << 21, 1 << 19, lambda m, x, n: m.saxpy[256, 256](x[0], x[1], 2.0, n)),
    "sum_tree": Case(400, 1 << 21, 1 << 19, lambda m, x, n: m.sum_tree[n // 2048, 256](x[0], x[1], n)),
    "sum_shuffle": Case(400, 1 << 21, 1 << 19, lambda m, x, n: m.sum_shuffle[n // 2048, 256](x[0], x[1], n)),
    "sgemm_tiled": Case(
        600, 256, 192, lambda m, x, n: m.sgemm_tiled[(n // 16, n // 16), (16, 16)](*x, n), square=True
    ),
    "sgemm_registers": Case(
        600, 384, 256, lambda m, x, n: m.sgemm_registers[(n // 128, n // 128), 256](*x, n), square=True
    ),
}


def arrays(gpu: simt.GPU, case: Case, n: int) -> list[DeviceArray]:
    shape = (n, n) if case.square else (n,)
    return [gpu.array(np.random.default_rng(k).random(shape, np.float32)) for k in range(3)]


def speed(case: Case, threads: int, code: Code) -> tuple[int, float, float]:
    """Thread instructions, and seconds of processor time and of the wall clock; the best of three runs."""
    gpu = simt.GPU("h100", functional=True, threads=threads, code=code)
    module, given = gpu.compile(SOURCE), arrays(gpu, case, case.n)
    best = None
    for _ in range(3):
        before = gpu.thread_instructions
        processor, wall = time.process_time(), time.perf_counter()
        case.launch(module, given, case.n)
        took = time.process_time() - processor, time.perf_counter() - wall
        best = min(best or took, took)
    assert best is not None
    return gpu.thread_instructions - before, *best


@dataclass(frozen=True)
class Timed:
    """A launch with timing, executed and from a trace of it: seconds of processor time, and cycles."""

    executed: float
    traced: float
    executed_cycles: int
    traced_cycles: int

    def __str__(self) -> str:
        return (
            f"{self.executed:.2f} / {self.traced:.2f} s = {self.executed / self.traced:.2f}, "
            f"{self.executed_cycles:,} / {self.traced_cycles:,} cycles"
        )


def timed(case: Case, gpu_name: str, code: Code) -> Timed:
    """The best of three runs. Copies to the GPU, which traces do not have, leave the caches as they are."""
    executed = traced = float("inf")
    cold = {"l2.copies_fill": False}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.simt"
        recorder = simt.GPU(gpu_name, functional=True, code=code)
        module, given = recorder.compile(SOURCE), arrays(recorder, case, case.timed_n)
        with recorder.trace(path):
            case.launch(module, given, case.timed_n)
        for _ in range(3):
            gpu = simt.GPU(gpu_name, set=cold, code=code)
            module, given = gpu.compile(SOURCE), arrays(gpu, case, case.timed_n)
            start = time.process_time()
            case.launch(module, given, case.timed_n)
            executed = min(executed, time.process_time() - start)
            start = time.process_time()
            replayed = simt.simulate(path, gpu_name, set=cold)
            traced = min(traced, time.process_time() - start)
    return Timed(executed, traced, gpu.launches[0].cycles, replayed.launches[0].cycles)


def cost_of_checks(case: Case, code: Code) -> tuple[float, float]:
    """Processor time of a checked launch over that of one without, the best of five each, and bytes of shadow
    memory over those of the arrays."""
    best = {}
    ready = {}
    for check in (False, True):
        gpu = simt.GPU("h100", functional=True, threads=1, code=code, check=check)
        module, given = gpu.compile(SOURCE), arrays(gpu, case, case.timed_n)
        ready[check] = gpu, module, given
        case.launch(module, given, case.timed_n)  # what a first launch prepares is not counted
        best[check] = math.inf
    for _ in range(5):
        for check, (_, module, given) in ready.items():
            start = time.process_time()
            case.launch(module, given, case.timed_n)
            best[check] = min(best[check], time.process_time() - start)
    gpu, _, given = ready[True]
    assert gpu.checking is not None
    assert not gpu.findings()
    touched = given if case.square or case is CASES["vecadd"] else given[: 2 if case is CASES["saxpy"] else 1]
    return best[True] / best[False], gpu.checking.native.shadow_bytes / sum(each.nbytes for each in touched)


def memory() -> tuple[float, float]:
    """Megabytes that a program of many CTAs allocates, and by how much the process grew meanwhile."""
    gpu = simt.GPU("h100", functional=True)
    module = gpu.compile(SOURCE)
    module.vecadd  # noqa: B018  what compiles is not the program's memory
    n = 1 << 23
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    given = [gpu.empty(n) for _ in range(3)]
    for k in range(3):  # host memory is taken by what is written
        module.vecadd[n // 256, 256](given[k - 2], given[k - 1], given[k], n)
    return 3 * 4 * n / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before


def print_cost_of_checks(names: list[str], code: Code) -> None:
    ratios = []
    for name in names:
        took, space = cost_of_checks(CASES[name], code)
        ratios.append(took)
        print(f"{name:16} {took:5.2f} times the time without, {space:.2f} times its memory", flush=True)
    print(f"{'geometric mean':16} {math.exp(sum(map(math.log, ratios)) / len(ratios)):5.2f} (target 5)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--code", choices=get_args(Code), default="ptx")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", default=list(CASES))
    options = parser.parse_args()
    if options.check:
        print_cost_of_checks(options.kernels, options.code)
        return
    allocated, grown = memory()  # first, while the peak so far is small
    print(f"memory: {allocated:.0f} MB allocated, {grown:.0f} MB more in use ({grown / allocated:.2f} times)")
    print("kernel            M thread instr.   M/s one thread (target)   2 threads")
    for name in options.kernels:
        case = CASES[name]
        count, processor, _ = speed(case, 1, options.code)
        _, both, wall = speed(case, 2, options.code)
        print(
            f"{name:16} {count / 1e6:16.1f} {count / processor / 1e6:16.0f} ({case.target:3})"
            f" {count / wall / 1e6:8.0f} wall {2 * count / both / 1e6:6.0f} cpu"
        )
        if options.code == "sass":
            of_ptx, took_ptx, _ = speed(case, 1, "ptx")
            rate = count / processor / (of_ptx / took_ptx)
            print(
                f"{'':16} against PTX: {rate:.2f} times its rate, {processor / took_ptx:.2f} times its time"
            )
        for gpu_name in ("qv100", "h100"):
            took = timed(case, gpu_name, options.code)
            print(f"{'':16} with timing on {gpu_name}, executed / traced: {took}", flush=True)


if __name__ == "__main__":
    main()
