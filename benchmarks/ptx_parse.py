"""PTX: megabytes parsed per second of one thread, and time for control flow and places of registers.

usage: python benchmarks/ptx_parse.py [--mb N] [FILE.ptx ...]

Without files it measures two texts of N megabytes each (default 8): short instructions as compilers write
them for arithmetic, and kernels with line information, vectors and inline assembly; then one kernel of
100,000 instructions. Rates are per second of the process's time, best of five.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

from simt import _engine

HEADER = ".version 8.3\n.target sm_80\n.address_size 64\n"
REGISTERS = (
    "\t.reg .pred \t%p<9>;\n\t.reg .b32 \t%r<2000>;\n\t.reg .b64 \t%rd<90>;\n\t.reg .f32 \t%f<2000>;\n"
)


def arithmetic(rng: random.Random) -> str:
    """A block of 12 lines, 30 bytes each."""
    r = [rng.randrange(2000) for _ in range(8)]
    return (
        f"\tadd.s32 \t%r{r[0]}, %r{r[1]}, {r[2]};\n\tmul.lo.s32 \t%r{r[3]}, %r{r[0]}, %r{r[1]};\n"
        f"\tfma.rn.f32 \t%f{r[4]}, %f{r[5]}, %f{r[6]}, %f{r[7]};\n\txor.b32 \t%r{r[5]}, %r{r[3]}, %r{r[0]};\n"
    ) * 3


def annotated(rng: random.Random) -> str:
    """A loop body with line information, and a piece of inline assembly."""
    r = [rng.randrange(2000) for _ in range(9)]
    return (
        f"\t.loc\t1 {r[0]} {r[1] % 80}, function_name $L__info_string0, inlined_at 1 {r[2]} 3\n"
        f"\t// begin inline asm\n\t@%p{r[3] % 9} ld.global.L1::evict_last.v4.b32 "
        f"{{ %r{r[3]}, %r{r[4]}, %r{r[5]}, %r{r[6]} }}, [ %rd{r[0] % 90} + 0 ];\n\t// end inline asm\n"
        "\tmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        f"{{ %f{r[0]}, %f{r[1]}, %f{r[2]}, %f{r[3]} }}, {{ %r{r[4]}, %r{r[5]}, %r{r[6]}, %r{r[7]} }}, "
        f"{{ %r{r[1]}, %r{r[8]} }}, {{ %f{r[0]}, %f{r[1]}, %f{r[2]}, %f{r[3]} }};\n"
        f"\t{{\n\t.reg .pred done;\n\tsetp.ne.b32 done, %r{r[0]}, 0;\n\t@done bra over;\n"
        f"\tshfl.sync.bfly.b32 %r{r[2]}, %r{r[4]}, 16, 31, -1;\n\tover:\n\t}}\n"
    )


TEXTS = {"arithmetic": arithmetic, "annotated": annotated}


def text_of(kind: str, size: int) -> bytes:
    block, rng = TEXTS[kind], random.Random(0)
    pieces, length, kernels = [HEADER], 0, 0
    while length < size:
        kernel = "".join(block(rng) for _ in range(200))
        kernels += 1
        pieces.append(
            f".visible .entry kernel{kernels}(\n\t.param .u64 a\n)\n{{\n{REGISTERS}{kernel}\tret;\n}}\n"
        )
        length += len(pieces[-1])
    return "".join(pieces).encode()


def one_big_kernel(instructions: int) -> bytes:
    """Blocks of 20 instructions with values of their own, and 100 that live all through."""
    rng = random.Random(0)
    blocks = instructions // 20
    lines = [HEADER, ".visible .entry big() {\n.reg .pred %p<9>;\n", f".reg .b32 %r<{100 + blocks * 10}>;\n"]
    lines += [f"mov.u32 %r{k}, {k};\n" for k in range(100)]
    for b in range(blocks):
        lines.append(f"L{b}:\n")
        own = range(100 + b * 10, 110 + b * 10)
        for k in range(18):
            written = own[k] if k < 10 else rng.randrange(100)
            read = own[rng.randrange(k)] if 0 < k < 10 else own[k % 10] if k else rng.randrange(100)
            lines.append(f"\tadd.s32 %r{written}, %r{read}, %r{rng.randrange(100)};\n")
        target = min(max(b + rng.randrange(-50, 50), 0), blocks - 1)
        lines.append(f"\tsetp.lt.s32 %p{b % 9}, %r{rng.randrange(100)}, 5;\n\t@%p{b % 9} bra L{target};\n")
    return "".join([*lines, "ret;\n}\n"]).encode()


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def report(name: str, text: bytes) -> None:
    parsing = best(lambda: _engine.PtxModule(text, name))
    module = _engine.PtxModule(text, name)
    counts = module.instruction_counts()

    def allocate() -> None:
        for index in range(len(counts)):
            module.allocation(index)

    allocating = best(allocate)
    print(
        f"{name:30} {len(text) / 1e6:7.2f} MB {sum(counts):8} instructions"
        f"  {len(text) / parsing / 1e6:7.1f} MB/s  {sum(counts) / parsing / 1e6:6.2f} M instructions/s"
        f"  control flow and allocation {allocating * 1e3:8.2f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=8)
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    if arguments.files:
        for path in arguments.files:
            report(path.name, path.read_bytes())
        return
    for kind in TEXTS:
        report(kind, text_of(kind, int(arguments.mb * 1e6)))
    report("one kernel", one_big_kernel(100_000))


if __name__ == "__main__":
    main()
