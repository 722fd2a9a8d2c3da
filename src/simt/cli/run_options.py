"""Options that `simt run` and `simt exec` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the specification; repeatable."),
]
Functional = Annotated[
    bool, typer.Option("--functional", help="Compute only the program's values, without timing.")
]
Code = Annotated[
    Literal["ptx", "sass"],
    typer.Option(help="What is executed where there is a choice: PTX, or machine code (extra cuda)."),
]
TensorArithmetic = Annotated[
    Literal["hardware", "exact"],
    typer.Option(help="How tensor cores add: as the GPU's do, to the bit, or in double precision."),
]
Threads = Annotated[int, typer.Option(min=1, help="Host threads. Results do not depend on them.")]
MaxCycles = Annotated[int | None, typer.Option(min=1, help="Stop after about this many core cycles.")]
Timeout = Annotated[
    float | None, typer.Option(min=0.001, metavar="SECONDS", help="Stop after about this many seconds.")
]
Timeline = Annotated[
    int | None, typer.Option(min=1, metavar="CYCLES", help="Sample a timeline at this interval.")
]
Sample = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD[:VARIANT]",
        help="Simulate less of each launch: systematic, photon (:block, :warp, :kernel), "
        "pkp, or pka with --plan, which state an interval of the cycles; photon-published, pkp:paper, "
        "pkp:artifact (as published), tbpoint, or first-n:N, which state none; or package.module:Class.",
    ),
]
SampleSet = Annotated[
    list[str] | None,
    typer.Option("--sample-set", metavar="KEY=VALUE", help="A parameter of --sample; repeatable."),
]
Plan = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Simulate only the launches of a plan made by `simt sample`."),
]
Launches = Annotated[
    str | None,
    typer.Option(
        metavar="SELECTION",
        help="Time only these launches (numbers from 1, ranges, names, name~TEXT, /regular expressions/); "
        "the others warm the caches.",
    ),
]
CaptureRange = Annotated[
    str | None,
    typer.Option(
        "--capture-range",
        metavar="NAME",
        help="Time only launches within ranges of this name; cudaProfilerApi: from cudaProfilerStart to "
        "cudaProfilerStop.",
    ),
]
Full = Annotated[
    Path | None,
    typer.Option(metavar="RESULT", help="A saved full Result of the same input to compare with."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Save the Result: a directory (Parquet, JSON) or a .json file."),
]
Power = Annotated[
    bool, typer.Option("--power", help="Energy of each launch in the Result, by the energies of this GPU.")
]
Energies = Annotated[
    str | None,
    typer.Option(
        metavar="GPU|FILE", help="The same by the energies of another GPU (`simt power gpus`) or a TOML file."
    ),
]
Clock = Annotated[
    float | None,
    typer.Option(metavar="MHZ", help="Core clock, in place of the specification's; L2 and network follow."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor the table.")]
