"""The least distance, in cycles, that ptxas leaves between an instruction of fixed latency and one that reads
its result: what the latencies of a specification must not exceed.

    python validation/distances.py ~/.cache/simt/ptxas --arch sm_90a --below 6
    python validation/distances.py program examples --arch sm_80 --arch sm_90a --reader UTMALDG

Takes `.cu`, `.ptx`, `.cubin` files, programs, and folders of them. A distance is the sum of the stall counts
from one instruction to the other along code without branches, where nothing waits for a counter. Beside each
pair of opcodes: the register file (R, UR, P, UP); which half of a pair of registers is written, and which is
read (low, high, or - where there is no pair), or `guard`; the least distance, how often it occurs, and where.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opcodes import ARCHS, code_files, cubins

from simt.errors import SimtError
from simt.sass import Control, Cubin, Instruction, disassemble
from simt.sass.program import registers

FILES = ("R", "UR", "P", "UP")
FAR = 48  # cycles: no result of fixed latency takes longer
ENDS = {
    "BRA",
    "BRX",
    "BRXU",
    "JMP",
    "JMX",
    "CALL",
    "RET",
    "EXIT",
    "BSYNC",
    "WARPSYNC",
    "BREAK",
    "YIELD",
    "BAR",
}
IN_ORDER = {"HGMMA", "IGMMA", "QGMMA"}  # awaited by WARPGROUP.DEPBAR
WIDE = ("IMAD.WIDE", "UIMAD.WIDE")


@dataclass(frozen=True, order=True)
class Pair:
    """writer, reader: opcodes. file: R, UR, P or UP. first, second: half of the writer's and of the reader's
    pair of registers, or "-"; second is "guard" for a guard.
    """

    arch: str
    writer: str
    reader: str
    file: str
    first: str
    second: str


@dataclass
class Least:
    cycles: int
    times: int  # at this distance
    where: str


def stall(control: Control) -> int:
    """Cycles to the next instruction. (What compilers do not emit has other rules.)"""
    return max(control.stall, 2 if control.yields else 1)


def kind(instruction: Instruction) -> str:
    opcode = instruction.opcode
    return next((wide for wide in WIDE if opcode.startswith(wide)), opcode.partition(".")[0])


def half(word: int, width: int) -> str:
    return ("low", "high")[word] if width == 2 else "-"


def pairs(cubin: Cubin) -> Iterator[tuple[Pair, int, str]]:
    """Each pair of a writer of fixed latency and a reader, with its distance and place."""
    touched = registers(cubin)
    for kernel, instructions in disassemble(cubin).items():
        written: dict[tuple[int, int], tuple[str, str, int]] = {}  # by file and index: kind, word, cycle
        now = 0
        for i, x in enumerate(instructions):
            writes, reads = touched[kernel][i]
            if x.control.waits:
                written.clear()
            for index, file, width in reads:
                guard = file >= 2 and x.predicate.lstrip("@!") == f"{FILES[file]}{index}"
                for k in range(width):
                    if (file, index + k) in written:
                        writer, first, at = written[file, index + k]
                        second = "guard" if guard else half(k, width)
                        pair = Pair(cubin.arch, writer, kind(x), FILES[file], first, second)
                        yield pair, now - at, f"{kernel[:24]}+{x.address:#06x}"
            for index, file, width in writes:
                for k in range(width):
                    if x.control.write_barrier is None and kind(x) not in IN_ORDER:
                        written[file, index + k] = kind(x), half(k, width), now
                    else:
                        written.pop((file, index + k), None)
            now += stall(x.control)
            if x.opcode.partition(".")[0] in ENDS:
                written.clear()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--arch", action="append", choices=ARCHS)
    parser.add_argument("--writer", action="append", help="only pairs with this opcode as their writer")
    parser.add_argument("--reader", action="append", help="only pairs with this opcode as their reader")
    parser.add_argument("--below", type=int, default=FAR, metavar="CYCLES", help="only shorter distances")
    arguments = parser.parse_args()
    archs = arguments.arch or list(ARCHS)
    least: dict[Pair, Least] = {}
    seen = set()
    count = 0
    for file in code_files(arguments.paths):
        try:
            for cubin in cubins(file, archs):
                if cubin.data in seen or not cubin.is_linked or cubin.arch not in archs:
                    continue
                seen.add(cubin.data)
                for pair, cycles, where in pairs(cubin):
                    known = least.get(pair)
                    if known is None or cycles < known.cycles:
                        least[pair] = Least(cycles, 1, f"{file.name}: {where}")
                    elif cycles == known.cycles:
                        known.times += 1
                count += 1
        except SimtError as error:
            print(f"left out: {file}: {str(error).splitlines()[0]}", file=sys.stderr)
    print(f"{count:,} cubins")
    for pair, found in sorted(least.items()):
        if found.cycles >= arguments.below:
            continue
        if arguments.writer and pair.writer not in arguments.writer:
            continue
        if arguments.reader and pair.reader not in arguments.reader:
            continue
        print(
            f"{pair.arch} {pair.writer:12} {pair.reader:12} {pair.file:2} {pair.first:4} {pair.second:5} "
            f"{found.cycles:3} {found.times:7,}  {found.where}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
