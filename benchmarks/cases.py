"""The work that bench.py counts and two_builds.py times.

A case is a generator: it yields once, after its set-up; what it does next is measured.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

Case = Callable[[], Iterator[None]]


def trace(kind: str, gpu: str, ctas: int) -> Case:
    """Simulates a trace of kernels.py, in the engine alone, on one thread."""

    def case() -> Iterator[None]:
        import kernels
        from simt import _engine
        from simt.spec import load_spec
        from simt.trace import open_trace

        engine = _engine.Gpu(load_spec(gpu).native(), 1)
        for command in open_trace(kernels.kernel(kind, ctas)).commands:
            engine.launch(command.source(), command.id)
        yield
        engine.run(1 << 60)

    return case


def memory(pattern: str) -> Case:
    """The memory system alone."""

    def case() -> Iterator[None]:
        import memory_system

        sectors = memory_system.Sectors(pattern, per_sm=500)
        yield
        sectors.run()

    return case


def executed(kernel: str, functional: bool) -> Case:
    """A kernel in CUDA C++ that is executed, on one thread, without or with cycles."""

    def case() -> Iterator[None]:
        import simt
        from functional import CASES, SOURCE, arrays

        gpu = simt.GPU("qv100", functional=functional, threads=1)
        module, chosen = gpu.compile(SOURCE), CASES[kernel]
        n = (384 if functional else 64) if chosen.square else 1 << 21
        given = arrays(gpu, chosen, n)
        chosen.launch(module, given, n)  # translates the kernel
        yield
        chosen.launch(module, given, n)

    return case


def parse(kind: str) -> Case:
    """Four megabytes of PTX."""

    def case() -> Iterator[None]:
        import ptx_parse

        from simt import _engine

        text = ptx_parse.text_of(kind, 4_000_000)
        yield
        _engine.PtxModule(text, kind)

    return case


def convert_text() -> Iterator[None]:
    """A trace in Accel-Sim's text format, to the trace store."""
    import kernels
    from simt.trace import convert

    source = kernels.kernel("gemm", 80)
    with tempfile.TemporaryDirectory() as folder:
        yield
        convert(source, Path(folder) / "out.simt")


def exec_requests() -> Iterator[None]:
    """simt's side of a program under `simt exec`: its start, 240 launches, 40 allocations, copies."""
    import exec as program_benchmark
    from simt.exec import run

    with tempfile.TemporaryDirectory() as folder:
        program = program_benchmark.build(Path(folder))
        yield
        finished = run([program, "50"], functional=True, threads=1)
        assert finished.status == 0


def start_up() -> Iterator[None]:
    """What every command does before its work: imports, and the models of a specification."""
    yield
    from simt.cli import main  # noqa: F401
    from simt.simulate import simulate  # noqa: F401
    from simt.spec import load_spec

    load_spec("qv100")


CASES: dict[str, Case] = {
    "start": start_up,
    "trace: streaming": trace("streaming", "qv100", 640),
    "trace: gemm": trace("gemm", "qv100", 40),
    "trace: ffma": trace("ffma", "qv100", 80),
    "trace: gemm, accelsim": trace("gemm", "qv100-accelsim", 40),
    "executed: saxpy": executed("saxpy", True),
    "executed: sgemm_registers": executed("sgemm_registers", True),
    "executed: sgemm_tiled, timed": executed("sgemm_tiled", False),
    "memory: l2-hits": memory("l2-hits"),
    "memory: dram-random": memory("dram-random"),
    "parse: arithmetic": parse("arithmetic"),
    "parse: annotated": parse("annotated"),
    "convert: text trace": convert_text,
    "exec: requests": exec_requests,
}
