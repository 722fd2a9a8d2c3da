"""`simt sass`: the machine code of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from simt.cli import COMMANDS
from simt.cli.json_output import Json, write_json
from simt.cli.tables import print_table
from simt.cuda import CubinModule, PtxModule, load_images, machine_code
from simt.cuda.ptxas import compiled_arch
from simt.errors import SassError
from simt.gpu.programs import target_of
from simt.isa import table_for
from simt.names import names_of
from simt.options import DEFAULT_GPU
from simt.result import LaunchResult, Result
from simt.sass import Cubin, Instruction, disassemble
from simt.sass.cubin import INSTRUCTION_BYTES
from simt.sass.program import refusals
from simt.spec import load_spec

EXAMPLES = """\b
Examples:
  simt sass list kernel.cu --gpu a100       kernels, sizes and opcodes
  simt sass show kernel.cu --gpu a100       every instruction with its control bits
  simt sass show kernel.cubin --kernel f    a cubin as it is; also what fatbins and programs hold
  simt sass show kernel.ptx --lines         with the source lines that they come from
  simt sass show kernel.cu --result out     with how often each was issued after `simt run --code sass`, and
                                            the warp-cycles that warps waited there, and for what

Control bits: the dependence counters that the instruction waits for, those that it raises for its operands
(R) and its result (W), whether the scheduler should take another warp next (Y), and the cycles before the
next instruction (S).
"""

_VISITS_WIDTH = 74  # columns for what happened at an instruction

Program = Annotated[Path, typer.Argument(help="A .cu, .ptx, .cubin or .fatbin file, or what nvcc made.")]
Gpu = Annotated[
    str, typer.Option(help="The GPU that the code is for: a name listed by `simt gpus`, or a TOML file.")
]
Options = Annotated[
    list[str] | None, typer.Option("--ptxas", metavar="OPTION", help="Of ptxas, such as -O1; repeatable.")
]

app = typer.Typer(
    add_completion=False,
    help=COMMANDS["sass"],
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("list", epilog=EXAMPLES)
def list_(program: Program, gpu: Gpu = DEFAULT_GPU, ptxas: Options = None, json_: Json = None) -> None:
    """The kernels of a program: instructions, registers, memory, opcodes, and what simt does not execute."""
    console = Console()
    rows, data, opcodes, refused = [], list[dict[str, Any]](), Counter[str](), dict[str, str]()
    for cubin in _cubins(program, gpu, ptxas):
        code, missing = disassemble(cubin), refusals(cubin)
        for kernel in cubin.kernels:
            found = code[kernel.name]
            names = Counter(each.opcode.partition(".")[0] for each in found)
            opcodes += names
            for address, why in missing[kernel.name].items():
                refused.setdefault(found[address // INSTRUCTION_BYTES].opcode, why)
            data.append(
                {
                    "kernel": kernel.name,
                    "arch": cubin.arch,
                    "instructions": len(found),
                    "executed": len(found) - len(missing[kernel.name]),
                    "opcodes": dict(names),
                    "registers": kernel.registers,
                    "shared_bytes": kernel.shared_bytes,
                    "stack_bytes": kernel.stack_bytes,
                    "parameter_bytes": sum(x.bytes for x in kernel.parameters),
                    "functions": [x.name for x in kernel.functions],
                }
            )
            rows.append(
                [
                    kernel.name,
                    cubin.arch,
                    f"{len(found):,}",
                    _share(len(found) - len(missing[kernel.name]), len(found)),
                    str(len(names)),
                    str(kernel.registers),
                    f"{kernel.shared_bytes:,}",
                    f"{kernel.stack_bytes:,}",
                    str(sum(x.bytes for x in kernel.parameters)),
                    ", ".join(x.name for x in kernel.functions) or "-",
                ]
            )
    if write_json(json_, {"kernels": data, "refused": list(refused.values())}):
        return
    header = ["kernel", "for", "instructions", "executed", "opcodes", "registers", "shared B", "stack B"]
    print_table(console, [*header, "parameters B", "functions in it"], rows, (0, 1, 9))
    table = table_for(load_spec(gpu).sm_version)[0]
    unknown = sorted(set(opcodes) - set(table.opcodes))
    known = "all of them" if not unknown else f"all but {', '.join(unknown)}"
    common = ", ".join(f"{name} {n}" for name, n in opcodes.most_common(10))
    console.print(
        f"\n{len(rows):,} kernel{'s' * (len(rows) != 1)}, {len(opcodes)} opcodes: {common}; "
        f"the timing model's table {table.name} has {known}",
        highlight=False,
    )
    for why in refused.values():
        console.print(f"not executed: {why}", highlight=False, markup=False)


def _share(part: int, whole: int) -> str:
    return "all" if part == whole else f"{100 * part / whole:.1f}%"


@app.command(epilog=EXAMPLES)
def show(
    program: Program,
    gpu: Gpu = DEFAULT_GPU,
    kernel: Annotated[
        str | None, typer.Option(help="Only this kernel: its name, mangled, demangled or plain.")
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Name the source line where it changes.")] = False,
    ptxas: Options = None,
    result: Annotated[
        Path | None,
        typer.Option(
            help="What a run of this machine code saved: what happened at each instruction and line."
        ),
    ] = None,
) -> None:
    """Each instruction with its address and control bits."""
    launches = None if result is None else Result.load(result).launches
    shown = 0
    for cubin in _cubins(program, gpu, ptxas):
        code, missing = disassemble(cubin), refusals(cubin)
        begin = 0
        for each in cubin.kernels:
            found = code[each.name]
            if kernel is None or kernel in names_of(each.name):
                notes = missing[each.name]
                if launches is None:
                    _show(cubin, each.name, found, notes, lines)
                    shown += 1
                elif ran := [x for x in launches if x.name == each.name]:
                    _show(cubin, each.name, found, notes, True, _visits(found, ran, begin), len(ran))
                    shown += 1
            begin += len(found) * INSTRUCTION_BYTES
    if not shown:
        where = "" if result is None else f" that {result} has launches of"
        raise SassError(
            f"{program}: no kernel {kernel or ''!r}{where}; `simt sass list` names those there are"
        )


@dataclass
class _Visits:
    """What happened at an instruction or a line in the launches of a Result.

    issued: warp instructions. waiting: warp-cycles that warps were found waiting there, by their state.
    """

    issued: int = 0
    waiting: Counter[str] = field(default_factory=Counter)

    def __format__(self, width: str) -> str:
        if not self.issued:
            return format("", width)
        total = self.waiting.total()
        reasons = " ".join(f"{state} {100 * n / total:.0f}%" for state, n in self.waiting.most_common(2))
        return format(f"{self.issued:11,} {total:11,} {total / self.issued:8.1f}  {reasons}", width)


def _visits(code: Sequence[Instruction], launches: Iterable[LaunchResult], begin: int) -> list[_Visits]:
    """begin: byte at which the kernel's code begins. Raises SassError if the launches executed other code."""
    found = [_Visits() for _ in code]
    for launch in launches:
        pc = launch.pc
        if not pc:
            raise SassError(f"{launch.name}: the Result has no table of instructions")
        for i, address in enumerate(pc["pc"]):
            at = (address - begin) // INSTRUCTION_BYTES
            if not 0 <= at < len(code) or code[at].opcode != pc["opcode"][i]:
                raise SassError(
                    f"{launch.name}: the Result has {pc['opcode'][i]} at {address:#06x}, the machine code "
                    f"{code[at].opcode if 0 <= at < len(code) else 'nothing'}; expected a run with "
                    "--code sass of this program, for the same GPU and with the same options"
                )
            found[at].issued += pc["issued"][i]
            for state, samples in pc["stalled"].items():
                if state != "selected" and samples[i]:
                    found[at].waiting[state] += samples[i] * pc["sample_interval"]
    return found


def _show(
    cubin: Cubin,
    name: str,
    code: Sequence[Instruction],
    refused: dict[int, str],
    lines: bool,
    visits: Sequence[_Visits] | None = None,
    launches: int = 0,
) -> None:
    """refused: as of `refusals`. visits: of each instruction in so many launches."""
    typer.echo(f"{name} ({cubin.arch}, {len(code):,} instructions)")
    functions = {x.start: x.name for x in cubin[name].functions}
    by_line: dict[tuple[str, int], _Visits] = {}
    if visits is not None:
        typer.echo(
            f"in {launches} launch{'es' * (launches != 1)}: warp instructions issued, warp-cycles waited, "
            "cycles waited per issue, and the two states most waited in (samples, taken every 64 cycles)"
        )
        for each, visit in zip(code, visits, strict=True):
            line = by_line.setdefault((each.file, each.line), _Visits())
            line.issued += visit.issued
            line.waiting += visit.waiting
    place = ("", 0)
    for i, each in enumerate(code):
        if each.address in functions:
            typer.echo(f"{functions[each.address]}:")
        if lines and (each.file, each.line) != place and each.line:
            place = (each.file, each.line)
            # A line's sum stands where its first instruction does.
            total = "" if visits is None else f"{by_line.pop(place, ''):{_VISITS_WIDTH}}"
            typer.echo(f"{total}    // {each.file}:{each.line}")
        beside = "" if visits is None else f"{visits[i]:{_VISITS_WIDTH}}"
        note = "   <- not executed by simt" if each.address in refused else ""
        typer.echo(f"{beside}  {each.address:04x}  {each.control}  {each.text}{note}")
    typer.echo()


def _cubins(program: Path, gpu: str, options: list[str] | None) -> list[Cubin]:
    """The program's machine code: as it is, or as ptxas makes it for the GPU."""
    device = target_of(load_spec(gpu))
    cubins = []
    for image in load_images(program, device, code="sass"):
        if isinstance(image, CubinModule):
            if options:
                raise SassError(f"{image.name}: --ptxas is for PTX and CUDA C++; this is machine code")
            cubins.append(image.cubin)
        elif isinstance(image, PtxModule):
            if (arch := compiled_arch(image, device)) != device:
                typer.echo(f"note: {gpu} is {device}; this is {arch} code", err=True)
            cubins.append(Cubin.parse(machine_code(image, arch, *(options or ())), image.name))
    return cubins
