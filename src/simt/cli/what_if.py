"""`simt sample what-if`: what a controller would have done in a run that was simulated in full."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from simt.cli.tables import print_table
from simt.errors import ControlError
from simt.files import require_output, write_text
from simt.formatting import kernel_label, percent
from simt.result import Result

if TYPE_CHECKING:
    from simt.control import WhatIf

EXAMPLES = """\b
Examples:
  simt run traces/ --timeline 500 --output out     the full run, once
  simt sample what-if out --sample pkp             what PKP would have done in each launch
  simt sample what-if out --sample pkp --sweep threshold=0.25,0.5,1,2,5 --plot sweep.png
  simt sample what-if out --sample pkp:artifact --sample-set latched=false --json -
"""


def what_if(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A saved Result, simulated in full with --timeline.")
    ],
    sample: Annotated[
        str,
        typer.Option(metavar="METHOD[:VARIANT]", help="pkp, pkp:paper, pkp:artifact, tbpoint, first-n:N."),
    ] = "pkp",
    sample_set: Annotated[
        list[str] | None,
        typer.Option("--sample-set", metavar="KEY=VALUE", help="A parameter of the method; repeatable."),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2,...", help="Try each of these values; repeatable, for all combinations."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Plot error and speedup.")] = None,
    json_: Annotated[
        str | None,
        typer.Option(
            "--json", metavar="FILE", help="Write JSON; - is stdout, which then holds nothing else."
        ),
    ] = None,
) -> None:
    """Show the stop cycle, projected and true cycles, error and speedup of a method, from a full run's
    timeline.
    """
    from simt.control import what_if as show
    from simt.control.registry import make

    for file in (plot, Path(json_) if json_ and json_ != "-" else None):
        if file is not None:
            require_output(file)
    finished = Result.load(result)
    found = {
        " ".join(combination) or sample: show(finished, make(sample, [*(sample_set or []), *combination]))
        for combination in product(*map(_values, sweep or []))
    }
    text = json.dumps([{"label": label, **x.to_json()} for label, x in found.items()], indent=1)
    if json_ is not None and json_ != "-":
        write_text(Path(json_), text + "\n")
    if plot is not None:
        from simt.control.plots import sweep_figure
        from simt.plots import save

        save(sweep_figure(found), plot)
    if json_ == "-":
        sys.stdout.write(text + "\n")
        return
    if sweep:
        _show_sweep(found)
    else:
        _show_launches(next(iter(found.values())))


def _values(text: str) -> list[str]:
    """`threshold=1,2` is `threshold=1` and `threshold=2`."""
    key, equals, values = text.partition("=")
    if not equals or not values:
        raise ControlError(f"--sweep {text}: expected KEY=V1,V2,... such as threshold=0.25,0.5,1")
    return [f"{key}={value.strip()}" for value in values.split(",")]


def _show_sweep(found: dict[str, WhatIf]) -> None:
    header = ["setting", "cut short", "error of total", "mean", "worst", "fewer instructions"]
    rows = [
        [
            label,
            f"{x.stopped} of {len(x.outcomes)}",
            f"{100 * x.error:+.2f} %",
            percent(x.mean_error),
            percent(x.worst_error),
            f"{x.speedup:.2f} x",
        ]
        for label, x in found.items()
    ]
    print_table(Console(), header, rows, (0,))


def _show_launches(found: WhatIf) -> None:
    header = ["id", "kernel", "decision", "at cycle", "projected", "true", "error", "fewer inst."]
    rows = [
        [
            str(x.id),
            kernel_label(x.name),
            x.decision,
            f"{x.stop_cycle:,}",
            f"{x.projected_cycles:,}",
            f"{x.true_cycles:,}",
            f"{100 * x.error:+.2f} %",
            f"{x.speedup:.2f} x",
        ]
        for x in found.outcomes
    ]
    console = Console()
    print_table(console, header, rows, (1, 2))
    console.print(
        f"\n{found.controller}: {found.stopped} of {len(found.outcomes)} launches cut short; error of all "
        f"cycles {100 * found.error:+.2f} %, of a launch {percent(found.mean_error)} on average and "
        f"{percent(found.worst_error)} at most; {found.speedup:.2f} times fewer instructions.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
