"""`simt debug`: find where two executions of a program diverge."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from simt.cli import COMMANDS
from simt.cli.tables import print_table
from simt.debug import ExecutionComparison, InstructionDifference, LaunchDifference
from simt.debug import compare as compare_executions
from simt.debug import record as record_execution
from simt.debug.compare import executor_named
from simt.debug.recording import MAX_BYTES
from simt.errors import DebugError
from simt.files import require_output, write_text
from simt.formatting import plural
from simt.options import DEFAULT_GPU
from simt.result.files import dump

COMPARE_EXAMPLES = """\b
Examples:
  simt debug record gemm -o before           then, with a changed simt or program:
  simt debug compare gemm before
  simt debug compare program.py ~/old/bin/python     another version of simt
  simt debug compare kernel.cu cuda          a GPU in this machine; kernel.py beside it is its driver
  simt debug compare kernel.cu sass --gpu a100       the machine code that ptxas makes of it
  simt debug compare program.py cuda --rtol 1e-5 --json - | jq .difference.instruction
"""
RECORD_EXAMPLES = """\b
Examples:
  simt debug record saxpy -o saxpy-before
  simt debug record program.py -o silicon --on cuda  results of a GPU in this machine
  simt debug record program.py -o silicon --on cuda --registers 3 --block 7,0,0
  simt debug record program.py -o digests --digests  small; finds the launch and allocation only
"""
DIFFERENT_EXIT = 1
_LEFT = {1, 2, 3}

app = typer.Typer(
    help=COMMANDS["debug"],
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ProgramArgument = Annotated[
    Path, typer.Argument(help="A program (.py, .cu, .ptx), or the name of an example or a workload.")
]
Gpu = Annotated[
    str, typer.Option("--gpu", help="GPU specification: a name listed by `simt gpus`, or a TOML file.")
]
Driver = Annotated[
    Path | None, typer.Option(metavar="FILE.py", help="Driver of a .cu or .ptx file: main(gpu, module).")
]
Size = Annotated[int | None, typer.Option(min=1, help="Size of a workload.")]


@app.command(epilog=COMPARE_EXAMPLES, no_args_is_help=True)
def compare(
    program: ProgramArgument,
    reference: Annotated[
        str,
        typer.Argument(
            help="A directory written by `simt debug record`, the Python of another version of simt, "
            "cuda[:N], or sass."
        ),
    ],
    gpu: Gpu = DEFAULT_GPU,
    driver: Driver = None,
    size: Size = None,
    rtol: Annotated[float, typer.Option(min=0, help="Relative tolerance for floats.")] = 0.0,
    atol: Annotated[float, typer.Option(min=0, help="Absolute tolerance for floats.")] = 0.0,
    block: Annotated[
        str | None, typer.Option(metavar="X,Y,Z", help="The CTA in which to search for the instruction.")
    ] = None,
    memory_only: Annotated[
        bool, typer.Option("--memory-only", help="Do not search for the instruction.")
    ] = False,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write JSON; - is stdout.")
    ] = None,
) -> None:
    """Report the first launch, and then the first instruction, whose result differs.

    Exit status: 0 the same, 1 different, 2 an error.
    """
    if json_ and json_ != "-":
        require_output(Path(json_))
    with contextlib.redirect_stdout(sys.stderr):  # what the program prints
        result = compare_executions(
            program,
            reference,
            gpu=gpu,
            driver=driver,
            size=size,
            rtol=rtol,
            atol=atol,
            instructions=not memory_only,
            block=_index(block) if block else None,
        )
    text = dump(result.to_json())
    if json_ == "-":
        sys.stdout.write(text + "\n")
    else:
        if json_:
            write_text(Path(json_), text)
        _show(result, Console())
    if not result.same:
        raise typer.Exit(DIFFERENT_EXIT)


@app.command(epilog=RECORD_EXAMPLES, no_args_is_help=True)
def record(
    program: ProgramArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory to write.")],
    gpu: Gpu = DEFAULT_GPU,
    driver: Driver = None,
    size: Size = None,
    on: Annotated[str, typer.Option("--on", help="Executes the launches: simt, or cuda[:N].")] = "simt",
    launches: Annotated[
        str | None,
        typer.Option(help="Launches whose contents are kept: ids, ranges, names; digests are kept of all."),
    ] = None,
    digests: Annotated[
        bool,
        typer.Option("--digests", help="Keep only digests; they suffice to find the launch and allocation."),
    ] = False,
    registers: Annotated[
        str | None,
        typer.Option(
            metavar="LAUNCHES", help="Launches of which the registers that --block writes are recorded, too."
        ),
    ] = None,
    block: Annotated[
        str, typer.Option(metavar="X,Y,Z", help="The CTA whose registers are recorded.")
    ] = "0,0,0",
    max_bytes: Annotated[int, typer.Option(min=1, help="Largest size of the data.")] = MAX_BYTES,
) -> None:
    """Record each launch of a program, with the memory before and after it."""
    with contextlib.redirect_stdout(sys.stderr):
        recording = record_execution(
            program,
            output,
            gpu=gpu,
            driver=driver,
            size=size,
            executor=executor_named(on),
            max_bytes=max_bytes,
            contents=not digests,
            launches=launches,
            registers=registers,
            block=_index(block),
        )
    typer.echo(f"{plural(len(recording), 'launch')} recorded in {output}")


def _index(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(p.strip().isdecimal() for p in parts):
        raise DebugError(f"--block {text!r}: expected up to three numbers, such as 3,0,0")
    x, y, z = (*map(int, parts), 0, 0)[:3]
    return x, y, z


def _show(result: ExecutionComparison, console: Console) -> None:
    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    difference = result.difference
    if difference is None:
        launches = plural(result.launches, "launch")
        say(f"The same: {launches} of {result.program} on simt and {result.reference}.")
        return
    if difference.memory:
        _show_memory(difference, console)
        say("")
    say(
        f"Launch {difference.launch}, `{difference.kernel}` (grid {_sizes(difference.grid)}, block "
        f"{_sizes(difference.block)}): {difference.message}."
    )
    if result.launches > 1:
        say(f"{plural(result.launches - 1, 'launch')} before it: the same.")
    if difference.memory and (writer := difference.memory[0].writer):
        say(
            f"The first element that differs was written by thread {_index_text(writer.thread)} of block "
            f"{_index_text(writer.block)}: {writer.instruction} (PTX line {writer.ptx_line})."
        )
    if difference.instruction is not None:
        say("")
        _show_instruction(difference.instruction, console)
    if difference.note:
        say(f"Instruction: {difference.note}.")


def _show_memory(difference: LaunchDifference, console: Console) -> None:
    header = ["allocation", "parameter", "element", "simt", "reference", "ULP", "differing", "largest ULP"]
    rows = []
    for d in difference.memory[:20]:
        known = bool(d.dtype)
        rows.append(
            [
                d.allocation,
                str(d.parameter or ""),
                f"[{', '.join(map(str, d.element))}]" if known else "",
                str(d.ours) if d.ours else "a different size or unknown contents",
                str(d.reference or ""),
                "" if d.ulps is None else f"{d.ulps:,}",
                f"{d.differing:,} of {d.elements:,}" if known else "",
                "" if d.largest_ulps is None else f"{d.largest_ulps:,}",
            ]
        )
    print_table(console, header, rows, {0, 2, 3, 4})


def _show_instruction(d: InstructionDifference, console: Console) -> None:
    where = (
        f"thread {_index_text(d.thread)} of block {_index_text(d.block)}, after {d.count:,} written registers"
    )
    if d.kind == "path":
        title = f"First difference: the executions go different ways ({where})"
    else:
        title = f"First instruction whose result differs ({where}):"
    console.print(title, highlight=False, markup=False, soft_wrap=True)
    console.print()
    rows = [["simt", d.instruction, str(d.ptx_line or "")]]
    if len(d.replaced) + len(d.replacement) > 2:
        rows = [["simt" if k == 0 else "", text, ""] for k, text in enumerate(d.replaced)]
        rows[-1][2] = str(d.ptx_line)
        rows += [["reference" if k == 0 else "", text, ""] for k, text in enumerate(d.replacement)]
        rows[-1][2] = str(d.reference_line)
    elif d.reference_instruction != d.instruction or d.kind == "path":
        rows.append(["reference", d.reference_instruction, str(d.reference_line or "")])
    print_table(console, ["", "instruction", "PTX line"], rows, {0, 1})
    if d.source_line:
        text = f"  {d.source_file}:{d.source_line}: {d.source_text}"
        console.print(text.rstrip(), highlight=False, markup=False, soft_wrap=True)
    if d.ours is None or d.reference is None:
        return
    console.print()
    values = [
        [
            f"{d.register} (result)",
            d.type,
            str(d.ours),
            str(d.reference),
            "" if d.ulps is None else f"{d.ulps:,}",
        ]
    ]
    for i in d.inputs:
        values.append([i.register, i.type, str(i.ours or ""), str(i.reference or ""), ""])
    print_table(console, ["register", "type", "simt", "reference", "ULP"], values, {0, 1, 2, 3})
    text = (
        "1 thread of this launch differs."
        if d.threads == 1
        else f"{d.threads:,} threads of this launch differ."
    )
    console.print(f"\n{text}", highlight=False, markup=False)


def _sizes(sizes: tuple[int, int, int]) -> str:
    return " x ".join(map(str, sizes))


def _index_text(index: tuple[int, int, int]) -> str:
    return f"({', '.join(map(str, index))})"
