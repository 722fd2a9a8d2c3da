"""The least distance, in cycles, that ptxas leaves between independent instructions of one warp and opcode:
for how long one occupies its pipe.

    python validation/intervals.py sm_70 sm_75 sm_80 sm_86 sm_90

Compiles a kernel for each opcode, with eight of them that do not depend on each other, and one for each of
some pairs of opcodes in turn: those that share a pipe are as far apart as instructions of one opcode. "-":
this compiler makes other instructions.
"""

from __future__ import annotations

import argparse
import re
import sys
from itertools import pairwise

from distances import stall

from simt.cuda import PtxModule, machine_code
from simt.errors import SimtError
from simt.sass import Cubin, disassemble

# By the opcode that ptxas makes of it: type of the result, and PTX, whose operands are numbers of registers.
PTX = {
    "FFMA": ("f", "fma.rn.f32 %f{d}, %f{a}, %f{b}, %f{a};"),
    "FMNMX": ("f", "min.f32 %f{d}, %f{a}, %f{b};"),
    "LOP3": ("r", "xor.b32 %r{d}, %r{a}, %r{b};"),
    "IMAD": ("r", "mad.lo.s32 %r{d}, %r{a}, %r{b}, %r{a};"),
    "IMAD.HI": ("r", "mul.hi.s32 %r{d}, %r{a}, %r{b};"),
    "IMAD.WIDE": ("l", "mad.wide.s32 %l{d}, %r{a}, %r{b}, %l{a};"),
    "HFMA2": ("r", "fma.rn.f16x2 %r{d}, %r{a}, %r{b}, %r{a};"),
    "DADD": ("d", "add.rn.f64 %d{d}, %d{a}, %d{b};"),
    "MUFU": ("f", "ex2.approx.ftz.f32 %f{d}, %f{a};"),
    "F2F": ("d", "cvt.f64.f32 %d{d}, %f{a};"),
    "I2F": ("f", "cvt.rn.f32.s32 %f{d}, %r{a};"),
    "POPC": ("r", "popc.b32 %r{d}, %r{a};"),
    "LDS": ("f", "ld.volatile.shared.f32 %f{d}, [%near+{o}];"),
    "LDC": ("f", "ld.const.f32 %f{d}, [%table+{o}];"),
    "LDC.64": ("d", "ld.const.f64 %d{d}, [%table+{o}];"),
}
PAIRS = (("I2F", "POPC"), ("MUFU", "POPC"), ("MUFU", "LDS"), ("MUFU", "LDC"), ("POPC", "LDC"), ("LDS", "LDC"))
PTX_TYPES = {"f": "f32", "r": "b32", "l": "b64", "d": "f64"}
SOURCES, FIRST = 8, 50  # instructions and registers that they read; the first register written


def kernel(number: int, opcodes: tuple[str, ...]) -> str:
    """Eight instructions of each opcode, in turn, between loads of operands and stores of results."""
    load = "\n".join(
        f"ld.global.{kind} %{name}{i}, [%p+{1024 * i + 8192 * order}];"
        for order, (name, kind) in enumerate(PTX_TYPES.items())
        for i in range(SOURCES)
    )
    body, store = [], []
    for i, opcode in enumerate(opcodes * SOURCES):
        file, work = PTX[opcode]
        a, b = i % SOURCES, (i + 3) % SOURCES
        body.append(work.format(d=FIRST + i, a=a, b=b, o=8 * i))
        store.append(f"st.global.{PTX_TYPES[file]} [%p+{65536 + 512 * i}], %{file}{FIRST + i};")
    lines = "\n".join([*body, "bar.sync 0;", *store])
    return f""".visible .entry k{number}(.param .u64 pointer) {{
.reg .f32 %f<99>; .reg .b32 %r<99>, %near; .reg .b64 %l<99>; .reg .f64 %d<99>; .reg .b64 %p, %table, %offset;
ld.param.u64 %p, [pointer];
{load}
mov.u32 %near, %r0;
cvt.u64.u32 %offset, %r0;
mov.u64 %table, constants;
add.s64 %table, %table, %offset;
bar.sync 0;
{lines}
ret;
}}"""


def intervals(arch: str) -> dict[str, int | None]:
    """Cycles from one instruction to the next of its opcode, or to one of the other. Raises SimtError."""
    head = f".version 8.0\n.target {arch}\n.address_size 64\n.const .align 8 .b8 constants[4096];\n"
    kernels: list[tuple[str, ...]] = [*((opcode,) for opcode in PTX), *PAIRS]
    text = head + "\n".join(kernel(number, opcodes) for number, opcodes in enumerate(kernels)) + "\n"
    cubin = Cubin.parse(machine_code(PtxModule.from_text(text, "intervals"), arch), "intervals")
    found: dict[str, int | None] = {}
    for name, code in disassemble(cubin).items():
        opcodes = kernels[int(name[1:])]
        now, issued = 0, []
        for x in code:
            for opcode in opcodes:
                if re.match(rf"{opcode}(\.|$)", x.opcode) and not x.predicate.startswith("@!PT"):
                    issued.append((now, opcode))
            now += stall(x.control)
        steps = pairwise(issued[-SOURCES * len(opcodes) :])
        apart = (b - a for (a, one), (b, other) in steps if len(opcodes) == 1 or one != other)
        found[" ".join(opcodes)] = min(apart, default=None)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("archs", nargs="+", metavar="ARCH", help="such as sm_70")
    archs = parser.parse_args().archs
    rows = {arch: intervals(arch) for arch in archs}
    print(f"{'':10}" + "".join(f"{arch:>8}" for arch in archs))
    for opcode in [*PTX, *map(" ".join, PAIRS)]:
        each = (rows[arch][opcode] for arch in archs)
        print(f"{opcode:10}" + "".join(f"{'-' if x is None else x:>8}" for x in each))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SimtError as error:
        sys.exit(str(error))
