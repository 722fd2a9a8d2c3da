"""The kernels of the speed benchmarks: streaming, GEMM-like, pure FFMA; a million warp instructions each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from simt import _engine
from simt.spec import Spec
from simt.trace import Copy, open_trace
from simt.trace.writer import KernelWriter, LaunchShape, Warp

LANES = range(32)
A, B, C = 0x7F0000000000, 0x7F0010000000, 0x7F0020000000


def _streaming(w: Warp, cta: int, warp: int) -> None:
    at = (cta * 256 + warp * 32) * 4
    w.op("MOV", 1)
    w.op("S2R", 6)
    w.op("S2R", 3)
    w.op("IMAD", 6, (6, 3))
    w.op("ISETP.GE.AND", None, (6,))
    w.op("MOV", 7)
    w.op("IMAD.WIDE", 4, (6, 7))
    w.op("IMAD.WIDE", 2, (6, 7))
    w.memory("LDG.E.SYS", [A + at + 4 * i for i in LANES], 4, 4, (4,))
    w.memory("LDG.E.SYS", [B + at + 4 * i for i in LANES], 4, 3, (2,))
    w.op("IMAD.WIDE", 6, (6, 7))
    w.op("FADD", 9, (4, 3))
    w.memory("STG.E.SYS", [C + at + 4 * i for i in LANES], 4, None, (6, 9))


def _ffma(w: Warp, cta: int, warp: int) -> None:
    w.op("MOV", 1)
    w.op("S2R", 2)
    start = w.pc
    for _ in range(24):
        w.pc = start
        for k in range(8):
            w.op("FFMA", 8 + k, (8 + k, 2, 8 + k))
        w.op("IADD3", 3, (3, 255))
        w.op("ISETP.GE.AND", None, (3,))
        w.op("BRA")
    w.memory("STG.E.SYS", [C + (cta * 256 + warp * 32 + i) * 4 for i in LANES], 4, None, (6, 8))


def _gemm(w: Warp, cta: int, warp: int) -> None:
    w.op("MOV", 1)
    w.op("S2R", 2)
    start, mine = w.pc, warp * 32 * 16
    for i in range(4):
        w.pc = start
        for register, base, tile in ((24, A, cta // 16), (28, B, cta % 16)):
            w.memory(
                "LDG.E.128.SYS",
                [base + tile * 65536 + i * 4096 + mine + 16 * k for k in LANES],
                16,
                register,
                (44,),
            )
        w.memory("STS.128", [mine + 16 * k for k in LANES], 16, None, (10, 24))
        w.memory("STS.128", [8192 + mine + 16 * k for k in LANES], 16, None, (11, 28))
        w.op("BAR.SYNC")
        for kk in range(8):
            w.memory("LDS.U.128", [kk * 512 + 16 * (k // 8) for k in LANES], 16, 32, (12,))
            w.memory("LDS.U.128", [8192 + kk * 512 + 16 * k for k in LANES], 16, 36, (13,))
            for k in range(16):
                w.op("FFMA", 64 + k, (32 + k % 4, 36 + k // 4, 64 + k))
        w.op("BAR.SYNC")
        w.op("IADD3", 3, (3, 255))
        w.op("ISETP.GE.AND", None, (3,))
        w.op("BRA")
    w.memory("STG.E.128.SYS", [C + (cta * 256 + warp * 32 + i) * 16 for i in LANES], 16, None, (6, 64))


def _nothing(w: Warp, cta: int, warp: int) -> None:
    pass


# Kind: body, CTAs of 256 threads, shared bytes, registers.
KINDS: dict[str, tuple[Callable[[Warp, int, int], None], int, int, int]] = {
    "streaming": (_streaming, 9000, 0, 12),
    "gemm": (_gemm, 320, 16384, 96),
    "ffma": (_ffma, 640, 0, 32),
}
IDLE = {"nothing": (_nothing, 1, 0, 8)}  # for what a simulator takes to start


def kernel(kind: str, ctas: int | None = None) -> Path:
    """The folder of a kind's trace, with as many CTAs as it has or as are given, written once."""
    body, of_kind, shared, registers = {**KINDS, **IDLE}[kind]
    ctas = ctas or of_kind
    folder = Path(tempfile.gettempdir()) / "simt-benchmarks" / f"{kind}-{ctas}"
    if not (folder / "kernelslist.g").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shape = LaunchShape(kind, (ctas, 1, 1), (256, 1, 1), 70, shared, registers)
        with KernelWriter(folder / "kernel-1.traceg", shape) as out:
            for cta in range(ctas):
                warps = []
                for number in range(8):
                    warp = Warp()
                    body(warp, cta, number)
                    warp.op("EXIT")
                    warps.append(warp)
                out.cta((cta, 0, 0), warps)
        (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
    return folder


def measure(kind: str, spec: Spec, threads: int = 1, repeats: int = 3) -> tuple[float, int, int]:
    """Best seconds of the engine, warp instructions, cycles."""
    trace = open_trace(kernel(kind))
    best = float("inf")
    for _ in range(repeats):
        engine = _engine.Gpu(spec.native(), threads)
        for command in trace.commands:
            if isinstance(command, Copy):
                engine.copy_from_host(command.address, command.bytes)
            else:
                engine.launch(command.source(), command.id)
        start = time.perf_counter()
        engine.run(1 << 60)
        best = min(best, time.perf_counter() - start)
        (record,) = engine.finished()
    counters = record["code"].parts(record["numbers"])["engine"]
    return best, counters["warp_instructions"], record["end_cycle"] - record["start_cycle"]
