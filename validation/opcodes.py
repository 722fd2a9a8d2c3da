"""How much of the machine code that ptxas makes of some programs simt executes.

    python validation/opcodes.py examples tests --arch sm_80 --arch sm_90a --out out/opcodes.json

Takes `.cu`, `.ptx` and `.cubin` files, programs, and folders of them; machine code counts for its own
architecture. Prints, for each architecture, how many opcodes and spellings (opcodes with their modifiers)
there are, and each spelling that is refused. With `--out`, the counts of all spellings are added to those
that FILE has already.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from simt.cuda import PtxModule, load_images, machine_code
from simt.cuda.cubin_module import CubinModule
from simt.errors import SimtError
from simt.files import write_text
from simt.sass import Cubin, disassemble
from simt.sass.cubin import INSTRUCTION_BYTES
from simt.sass.program import refusals

ARCHS = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a")


def code_files(paths: list[Path]) -> list[Path]:
    """Files, and those of folders that hold code."""
    return [
        file
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if file == path or file.suffix in (".cu", ".ptx", ".cubin")
    ]


def cubins(path: Path, archs: list[str]) -> Iterator[Cubin]:
    """The machine code of a file, or what ptxas makes of it for each architecture."""
    if path.suffix == ".cubin":
        yield Cubin.parse(path.read_bytes(), str(path))
        return
    for arch in archs:
        try:
            for image in load_images(path, arch, code="sass"):
                if isinstance(image, CubinModule):
                    yield image.cubin
                elif isinstance(image, PtxModule):
                    yield Cubin.parse(machine_code(image, arch), f"{path} for {arch}")
        except SimtError as error:
            print(f"left out: {path} for {arch}: {str(error).splitlines()[0]}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--arch", action="append", choices=ARCHS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found: dict[str, Counter[str]] = defaultdict(Counter)
    refused: dict[str, dict[str, str]] = defaultdict(dict)
    if arguments.out and arguments.out.exists():
        known = json.loads(arguments.out.read_text())
        found |= {arch: Counter(counts) for arch, counts in known["spellings"].items()}
        refused |= known["refused"]
    seen = set()
    for file in code_files(arguments.paths):
        for cubin in cubins(file, arguments.arch or list(ARCHS)):
            if cubin.data in seen or not cubin.is_linked:
                continue
            seen.add(cubin.data)
            try:
                code, missing = disassemble(cubin), refusals(cubin)
            except SimtError as error:
                print(f"left out: {cubin.name}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            for kernel, instructions in code.items():
                found[cubin.arch].update(x.opcode for x in instructions)
                for address, why in missing[kernel].items():
                    opcode = instructions[address // INSTRUCTION_BYTES].opcode
                    refused[cubin.arch].setdefault(opcode, why)
    if arguments.out:
        write_text(arguments.out, json.dumps({"spellings": found, "refused": refused}, indent=1))
    for arch, counts in {**dict(sorted(found.items())), "all": sum(found.values(), Counter())}.items():
        opcodes = {spelling.partition(".")[0] for spelling in counts}
        print(f"{arch}: {counts.total():,} instructions, {len(opcodes)} opcodes, {len(counts)} spellings")
    for arch, reasons in sorted(refused.items()):
        for opcode, why in sorted(reasons.items()):
            print(f"{arch}: {opcode} is refused: {why}")
    return any(refused.values())


if __name__ == "__main__":
    sys.exit(main())
