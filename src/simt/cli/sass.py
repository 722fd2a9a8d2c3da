"""`simt sass`: the machine code of a program."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from simt.cli import COMMANDS
from simt.cli.tables import print_table
from simt.cuda import CubinModule, PtxModule, load_images, machine_code
from simt.cuda.cubin_module import code_arch
from simt.errors import SassError
from simt.gpu.programs import target_of
from simt.isa import table_for
from simt.sass import Cubin, Instruction, disassemble
from simt.spec import load_spec

EXAMPLES = """\b
Examples:
  simt sass list kernel.cu --gpu a100       kernels, sizes and opcodes
  simt sass show kernel.cu --gpu a100       every instruction with its control bits
  simt sass show kernel.cubin --kernel f    a cubin as it is; also what fatbins and programs hold
  simt sass show kernel.ptx --lines         with the source lines that they come from

Control bits: the dependence counters that the instruction waits for, those that it raises for its operands
(R) and its result (W), whether the scheduler should take another warp next (Y), and the cycles before the
next instruction (S).
"""

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
def list_(program: Program, gpu: Gpu = "a100", ptxas: Options = None) -> None:
    """The kernels of a program: instructions, registers, memory, and opcodes."""
    console = Console()
    rows, opcodes = [], Counter[str]()
    for cubin in _cubins(program, gpu, ptxas):
        code = disassemble(cubin)
        for kernel in cubin.kernels:
            found = code[kernel.name]
            names = Counter(each.opcode.partition(".")[0] for each in found)
            opcodes += names
            rows.append(
                [
                    kernel.name,
                    cubin.arch,
                    f"{len(found):,}",
                    str(len(names)),
                    str(kernel.registers),
                    f"{kernel.shared_bytes:,}",
                    f"{kernel.stack_bytes:,}",
                    str(sum(x.bytes for x in kernel.parameters)),
                    ", ".join(x.name for x in kernel.functions) or "-",
                ]
            )
    header = ["kernel", "for", "instructions", "opcodes", "registers", "shared B", "stack B", "parameters B"]
    print_table(console, [*header, "functions in it"], rows, (0, 1, 8))
    table = table_for(load_spec(gpu).sm_version)[0]
    unknown = sorted(set(opcodes) - set(table.opcodes))
    known = "all of them" if not unknown else f"all but {', '.join(unknown)}"
    common = ", ".join(f"{name} {n}" for name, n in opcodes.most_common(10))
    console.print(
        f"\n{len(rows):,} kernel{'s' * (len(rows) != 1)}, {len(opcodes)} opcodes: {common}; "
        f"the timing model's table {table.name} has {known}",
        highlight=False,
    )


@app.command(epilog=EXAMPLES)
def show(
    program: Program,
    gpu: Gpu = "a100",
    kernel: Annotated[str | None, typer.Option(help="Only this kernel.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Name the source line where it changes.")] = False,
    ptxas: Options = None,
) -> None:
    """Each instruction with its address and control bits."""
    shown = 0
    for cubin in _cubins(program, gpu, ptxas):
        code = disassemble(cubin)
        for each in cubin.kernels:
            if kernel in (None, each.name):
                functions = {x.start: x.name for x in each.functions}
                _show(each.name, cubin.arch, code[each.name], functions, lines)
                shown += 1
    if not shown:
        raise SassError(f"{program}: no kernel {kernel!r}; `simt sass list` names those there are")


def _show(name: str, arch: str, code: list[Instruction], functions: dict[int, str], lines: bool) -> None:
    typer.echo(f"{name} ({arch}, {len(code):,} instructions)")
    place = ("", 0)
    for each in code:
        if each.address in functions:
            typer.echo(f"{functions[each.address]}:")
        if lines and (each.file, each.line) != place and each.line:
            place = (each.file, each.line)
            typer.echo(f"    // {each.file}:{each.line}")
        typer.echo(f"  {each.address:04x}  {each.control}  {each.text}")
    typer.echo()


def _cubins(program: Path, gpu: str, options: list[str] | None) -> list[Cubin]:
    """The program's machine code: as it is, or as ptxas makes it for the GPU."""
    device = target_of(load_spec(gpu))
    arch = code_arch(device)
    images = load_images(program, device, code="sass")
    if arch != device and any(not isinstance(image, CubinModule) for image in images):
        typer.echo(
            f"note: {gpu} is {device}, which CUDA 13's tools do not know; this is {arch} code", err=True
        )
    cubins = []
    for image in images:
        if isinstance(image, CubinModule):
            if options:
                raise SassError(f"{image.name}: --ptxas is for PTX and CUDA C++; this is machine code")
            cubins.append(image.cubin)
        elif isinstance(image, PtxModule):
            cubins.append(Cubin.parse(machine_code(image, arch, *(options or ())), image.name))
    return cubins
