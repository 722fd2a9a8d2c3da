"""`python -m simt.torch [OPTIONS] script.py [ARGUMENTS]`: a PyTorch or Triton script as it is."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from simt.cli import record_options
from simt.cli.tables import show_result
from simt.exec import numbered
from simt.files import require_output, write_text
from simt.options import GpuOptions
from simt.result.files import dump

EXAMPLES = """\b
Examples:
  python -m simt.torch script.py                       tensors on "cuda" are on a simulated H100
  python -m simt.torch --functional script.py          values only: about a thousand times as fast
  python -m simt.torch --gpu a100,a100 script.py       two devices
  python -m simt.torch --launches 'name~gemm' script.py    time these kernels only
"""


def main(
    script: Annotated[Path, typer.Argument(help="The script, which says `cuda`.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its arguments.")] = None,
    energies: record_options.Energies = None,
    sample_set: record_options.SampleSet = None,
    json_: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="Write the Result as JSON; further ones to numbered files."
        ),
    ] = None,
    quiet: record_options.Quiet = False,
    **options: Any,
) -> None:
    """Run a PyTorch or Triton script without a GPU, with PyTorch's build for the CPU."""
    from simt.torch import script as scripts

    values = record_options.read(options, sample_set, energies)
    values["progress"] = not quiet and sys.stderr.isatty()
    if json_ is not None:
        require_output(json_)
    names = values.pop("gpu").split(",")
    given = record_options.record_of(GpuOptions, {**values, "gpu": names[0]}, "").keywords()
    given.pop("gpu", None)
    scripts.use(names, timed=not given.pop("functional", False), device="cuda", **given)
    sys.argv = [str(script), *(arguments or [])]
    sys.path[0] = str(script.parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        results = [result for result in scripts.results() if result.launches]
        for result, file in zip(results, numbered(json_), strict=False):
            if not quiet:
                show_result(result, Console(stderr=True))
            if file is not None:
                write_text(Path(file), dump(result.to_json()))


app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,  # a script's errors look as under Python
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=EXAMPLES, context_settings={"allow_interspersed_args": False})(
    record_options.takes(GpuOptions)(main)
)
