"""`simt policy`: policies of one's own, in C++."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from simt.cli import COMMANDS
from simt.cli.json_output import Json, records, write_json
from simt.cli.tables import print_table

app = typer.Typer(help=COMMANDS["policy"], no_args_is_help=True)

_SETTINGS = {
    "scheduler": "sm.scheduler.policy",
    "replacement": "l1.cache.replacement",
    "write_policy": "l1.cache.write_policy",
    "set_index": "l1.cache.set_index",
    "slice_hash": "address_map.hash",
    "dram_scheduler": "dram.scheduler",
}
"""A setting that takes each kind, for the examples."""


@app.command(
    "build",
    epilog="""Examples:

\b
  simt policy build youngest.cpp
  simt run traces/ --set sm.scheduler.policy=youngest
  simt run traces/ --set sm.scheduler.policy=youngest.cpp:youngest
  simt run traces/ --set sm.scheduler.policy=policies.py:TwoLevel
""",
)
def build_file(file: Annotated[Path, typer.Argument(help="C++ file with one or several policies.")]) -> None:
    """Compile a C++ file's policies, and keep it, so that specifications can name them."""
    from simt.policy import build

    for each in build(file):
        kind = each.kind.replace("_", " ")
        typer.echo(f"built {kind} {each.name}: --set {_SETTINGS[each.kind]}={each.name}")


@app.command("list")
def list_policies(json_: Json = None) -> None:
    """Show the policies that were built. Those of simt are shown by `simt gpus fields`."""
    from simt.policy import built

    rows = [[each.name, each.kind.replace("_", " "), each.file] for each in built()]
    if write_json(json_, records(["name", "kind", "file"], rows)):
        return
    if not rows:
        typer.echo("no policies have been built")
        return
    print_table(Console(), ["name", "kind", "built from"], rows, left={0, 1, 2})


@app.command("remove")
def remove_file(name: Annotated[str, typer.Argument(help="Name of a policy.")]) -> None:
    """Forget the file with this policy, and so all policies in it."""
    from simt.policy import remove

    for each in remove(name):
        typer.echo(f"removed {each.kind.replace('_', ' ')} {each.name}")
