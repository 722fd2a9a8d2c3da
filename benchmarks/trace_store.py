"""Trace store: bytes per warp instruction, conversion and read rates, peak memory.

usage: python benchmarks/trace_store.py [--big N] [--real DIRECTORY]

Big traces (N million warp instructions each, default 20, the irregular one a twentieth of that) are made as
text in memory and fed to the converter, so that neither a disk nor a decompressor is measured. Real traces
(from ../shared/data/traces; skipped where that is missing) and generated ones are converted from their files.
Rates are per second of one thread's time, except for the conversion of files, which reads, parses and
compresses in three threads and is timed by the clock.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from simt import _engine
from simt.isa import table_for
from simt.trace import convert, open_trace, store
from simt.trace.generate import generate

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "traces"

HEADER = """-kernel name = {name}
-kernel id = 1
-grid dim = ({ctas},1,1)
-block dim = (256,1,1)
-shmem = 0
-nregs = 32
-binary version = 70
-cuda stream id = 0
-accelsim tracer version = 5
-enable lineinfo = 0

#traces format
"""
A, B, C = 0x7F0000000000, 0x7F1000000000, 0x7F2000000000
WARPS = 8


def vecadd(cta: int, warp: int, rng: random.Random) -> list[str]:
    g = (cta * WARPS + warp) * 128
    body = [
        "1 R1 MOV 0 0 0", "1 R6 S2R 0 0 0", "1 R3 S2R 0 0 0", "1 R6 IMAD 2 R6 R3 0 0",
        "0 ISETP.GE.AND 1 R6 0 0", "1 R7 MOV 0 0 0", "1 R4 IMAD.WIDE 2 R6 R7 0 0",
        "1 R2 IMAD.WIDE 2 R6 R7 0 0", f"1 R4 LDG.E.SYS 1 R4 4 1 0x{A + g:x} 4 0",
        f"1 R3 LDG.E.SYS 1 R2 4 1 0x{B + g:x} 4 0",
        "1 R6 IMAD.WIDE 2 R6 R7 0 0", "1 R9 FADD 2 R4 R3 0 0", f"0 STG.E.SYS 2 R6 R9 4 1 0x{C + g:x} 4 0",
        "0 EXIT 0 0 0",
    ]  # fmt: skip
    return [f"{16 * i:04x} ffffffff {text} \n" for i, text in enumerate(body)]


FFMA = [f"{32 + 16 * k:04x} ffffffff 1 R{8 + k} FFMA 3 R{8 + k} R2 R{8 + k} 0 0 \n" for k in range(8)]
FFMA += ["00a0 ffffffff 1 R3 IADD3 2 R3 R255 0 0 \n", "00b0 ffffffff 0 BRA 0 0 0 \n"]


def ffma(cta: int, warp: int, rng: random.Random) -> list[str]:
    g = C + (cta * WARPS + warp) * 128
    return [
        *FFMA * 24,
        f"00c0 ffffffff 0 STG.E.SYS 2 R6 R8 4 1 0x{g:x} 4 0 \n",
        "00d0 ffffffff 0 EXIT 0 0 0 \n",
    ]


FRAGMENT = " ".join(["0 0 0 0 0 0 0 16"] * 4)[:-3]
INNER = []
for k in range(8):
    INNER.append(f"{0x100 + 288 * k:04x} ffffffff 1 R32 LDS.U.128 1 R12 16 2 0x{k * 512:x} {FRAGMENT} 0 \n")
    INNER.append(f"{0x110 + 288 * k:04x} ffffffff 1 R36 LDS.U.128 1 R13 16 1 0x{8192 + k * 512:x} 16 0 \n")
    for j in range(16):
        pc = 0x120 + 288 * k + 16 * j
        INNER.append(f"{pc:04x} ffffffff 1 R{64 + j} FFMA 3 R{32 + j % 4} R{36 + j // 4} R{64 + j} 0 0 \n")


def gemm(cta: int, warp: int, rng: random.Random) -> list[str]:
    t = warp * 512
    lines = []
    for i in range(8):
        a, b = A + cta // 16 * 65536 + i * 4096 + t, B + cta % 16 * 65536 + i * 4096 + t
        lines += [
            f"0020 ffffffff 1 R24 LDG.E.128.SYS 1 R44 16 1 0x{a:x} 16 0 \n",
            f"0030 ffffffff 1 R28 LDG.E.128.SYS 1 R46 16 1 0x{b:x} 16 0 \n",
            f"0040 ffffffff 0 STS.128 2 R10 R24 16 1 0x{t:x} 16 0 \n",
            f"0050 ffffffff 0 STS.128 2 R11 R28 16 1 0x{8192 + t:x} 16 0 \n",
            "0060 ffffffff 0 BAR.SYNC 0 0 0 \n",
            *INNER,
            "0c00 ffffffff 0 BAR.SYNC 0 0 0 \n",
            "0c10 ffffffff 0 BRA 0 0 0 \n",
        ]
    return [*lines, f"0c20 ffffffff 0 STG.E.128.SYS 2 R6 R64 16 1 0x{C + cta * 4096 + t:x} 16 0 \n",
            "0c30 ffffffff 0 EXIT 0 0 0 \n"]  # fmt: skip


def gather(cta: int, warp: int, rng: random.Random) -> list[str]:
    lines = []
    for i in range(8):
        steps = " ".join(str(rng.randrange(-(1 << 20), 1 << 20) * 32) for _ in range(31))
        lines.append(f"{16 * i:04x} ffffffff 1 R{8 + i} LDG.E.SYS 1 R4 4 2 0x{A + (1 << 30):x} {steps} 0 \n")
        lines.append(f"{256 + 16 * i:04x} {rng.getrandbits(32):08x} 1 R20 FADD 2 R20 R{8 + i} 0 0 \n")
    return [*lines, "0400 ffffffff 0 EXIT 0 0 0 \n"]


PATTERNS = {
    "vecadd": (vecadd, 1.0),
    "ffma": (ffma, 1.0),
    "gemm": (gemm, 1.0),
    "gather (irregular)": (gather, 0.05),
}


def text(pattern: str, millions: float) -> Iterator[bytes]:
    rng = random.Random(0)
    make, share = PATTERNS[pattern]
    per_cta = WARPS * len(make(0, 0, rng))
    ctas = int(share * millions * 1e6 / per_cta) + 1
    yield HEADER.format(name=pattern, ctas=ctas).encode()
    for cta in range(ctas):
        parts = [f"#BEGIN_TB\nthread block = {cta},0,0\n"]
        for warp in range(WARPS):
            lines = make(cta, warp, rng)
            parts.append(f"warp = {warp}\ninsts = {len(lines)}\n")
            parts += lines
        parts.append("#END_TB\n")
        yield "".join(parts).encode()


def report(name: str, count: int, size: int, text_bytes: int, convert_s: float, path: Path) -> None:
    kernels = open_trace(path).kernels
    rates = []
    for addresses in (False, True):
        start = time.process_time()
        read = sum(k.source().walk(addresses)[0] for k in kernels)
        rates.append(read / (time.process_time() - start) / 1e6)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:22} {count:12,} {text_bytes / 1e6:9.1f} {size / count:9.4f} {count / convert_s / 1e6:9.1f}"
        f" {rates[0]:8.1f} {rates[1]:8.1f} {memory:7.0f}",
        flush=True,
    )


def big(pattern: str, millions: float) -> None:
    """Feeds generated text to the converter; only the converter's and compressor's time counts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.simt"
        converter = _engine.TraceConverter()
        spent, total = 0.0, 0
        blocks = []
        with store.StoreWriter(path) as writer:
            for piece in text(pattern, millions):
                total += len(piece)
                start = time.process_time()
                converter.feed(piece)
                for summary, data in converter.take_blocks():
                    blocks.append((writer.add_part(len(data), store.compress(data)), summary))
                spent += time.process_time() - start
            converter.finish()
            for summary, data in converter.take_blocks():
                blocks.append((writer.add_part(len(data), store.compress(data)), summary))
            writer.add_kernel(converter, blocks)
            writer.finish()
        report(pattern, converter.counts.instructions, path.stat().st_size, total, spent, path)


def file(name: str, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.simt"
        start = time.perf_counter()
        convert(path, out)
        spent = time.perf_counter() - start
        kernels = open_trace(out).kernels
        count = sum(k.counts["instructions"] for k in kernels)
        source = open_trace(path)
        report(
            name, count, out.stat().st_size, sum(k.path.stat().st_size for k in source.kernels), spent, out
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--big", type=float, default=20, help="millions of warp instructions")
    parser.add_argument("--real", type=Path, default=REAL)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        big(options.only, options.big)
        return
    table_for(70)
    print(
        f"{'trace':22} {'warp instr.':>12} {'input MB':>9} {'B/instr.':>9} {'convert':>9} {'read':>8}"
        f" {'+ addr.':>8} {'peak MB':>7}   (rates: million warp instructions/s)",
        flush=True,
    )
    for pattern in PATTERNS:  # a process each, so that peak memory is each one's own
        subprocess.run([sys.executable, __file__, "--big", str(options.big), "--only", pattern], check=True)
    with tempfile.TemporaryDirectory() as folder:
        for kind, size in (("gemm", 1024), ("stencil", 1024), ("streaming", 1 << 20), ("gather", 1 << 15)):
            file(f"generated {kind}", generate(kind, Path(folder) / kind, size=size, compression="none"))
    if options.real.is_dir():
        for path in sorted(p for p in options.real.iterdir() if p.is_dir()):
            file(path.name, path)


if __name__ == "__main__":
    main()
