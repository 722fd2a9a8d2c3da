"""`simt cache`: the cache of converted traces and compiled programs."""

from __future__ import annotations

from collections import Counter

import typer

from simt import cache
from simt.cli import COMMANDS
from simt.cli.json_output import Json, write_json

app = typer.Typer(help=COMMANDS["cache"], no_args_is_help=True)


@app.command()
def info(json_: Json = None) -> None:
    """Show the location, size and limit of the cache."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for path, size, _ in cache.cached_files():
        sizes[path.parent.name] += size
        counts[path.parent.name] += 1
    kinds = {kind: {"files": counts[kind], "bytes": sizes[kind]} for kind in sorted(sizes)}
    data = {
        "folder": cache.cache_root(),
        "bytes": sizes.total(),
        "limit": cache.cache_limit(),
        "kinds": kinds,
    }
    if write_json(json_, data):
        return
    typer.echo(f"{cache.cache_root()}: {sizes.total():,} of at most {cache.cache_limit():,} bytes")
    for kind in sorted(sizes):
        typer.echo(f"  {kind}: {counts[kind]:,} files, {sizes[kind]:,} bytes")


@app.command()
def clear() -> None:
    """Delete everything in the cache."""
    count, freed = cache.clear()
    typer.echo(f"deleted {count:,} files, {freed:,} bytes")
