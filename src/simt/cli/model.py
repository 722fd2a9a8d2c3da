"""`simt model`: a language model's time on a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from simt.cli import COMMANDS, completion, ending_by_signals
from simt.cli.json_output import Json, write_json
from simt.files import require_folder, require_output
from simt.names import printable
from simt.network import predict
from simt.options import DEFAULT_GPU
from simt.run.overrides import override_texts

EXAMPLES = """\b
Examples:
  simt model llama-3-8b --gpu h100 --batch 8 --prefill 2048 --decode 128
  simt model path/to/config.json --gpu a100 --weights int4
  simt model mixtral-8x7b --json - | jq .time_per_token
  simt model llama-3-70b --gpu h100 --tensor-parallel 4     four GPUs that share each layer
  simt model gpt2 --gpu a100 --chakra gpt2.0.et     a trace for ASTRA-sim
"""

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(help=COMMANDS["model"], epilog=EXAMPLES, no_args_is_help=True)
def model(
    config: Annotated[
        str, typer.Argument(help="A built-in name, or a Hugging Face config.json or its folder.")
    ],
    gpu: Annotated[
        str,
        typer.Option(help="A name listed by `simt gpus`, or a TOML file.", autocompletion=completion.gpus),
    ] = DEFAULT_GPU,
    batch: Annotated[int, typer.Option(help="Sequences.")] = 1,
    prefill: Annotated[int, typer.Option(help="Tokens of each prompt, a multiple of 16.")] = 1024,
    decode: Annotated[int, typer.Option(help="Tokens generated for each sequence.")] = 128,
    weights: Annotated[
        str, typer.Option(help="Type of the layers' matrices: same (as activations), fp8 or int4.")
    ] = "same",
    layers: Annotated[int | None, typer.Option(help="So many layers instead of all.")] = None,
    tensor_parallel: Annotated[
        int, typer.Option("--tensor-parallel", help="GPUs that share each layer, linked by the peer_link.")
    ] = 1,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes that simulate launches.", show_default="one for each core"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the specification."),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table of operators as Parquet.")
    ] = None,
    chakra: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the launches as a Chakra execution trace, as ASTRA-sim reads."
        ),
    ] = None,
    vidur: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Add rows to Vidur's profiles, DIR/mlp.csv and DIR/attention.csv."),
    ] = None,
    phantora: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Add linear layers and attention to Phantora's database in DIR."),
    ] = None,
    json_: Json = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")] = False,
) -> None:
    for file in (parquet, chakra):
        if file is not None:
            require_output(file)
    for folder in (vidur, phantora):
        if folder is not None:
            require_folder(folder)

    def told(text: str) -> None:
        if not quiet and sys.stderr.isatty():
            typer.echo(f"\r\x1b[K{text}", nl=False, err=True)

    with ending_by_signals():
        found = predict(
            config,
            gpu,
            batch=batch,
            prefill=prefill,
            decode=decode,
            weights=weights,  # type: ignore[arg-type]
            layers=layers,
            tensor_parallel=tensor_parallel,
            workers=workers,
            set=override_texts(set_),
            progress=told,
        )
    if not quiet and sys.stderr.isatty():
        typer.echo("\r\x1b[K", nl=False, err=True)
    if parquet is not None:
        found.write_parquet(parquet)
    if chakra is not None:
        found.write_chakra(chakra)
    if vidur is not None:
        found.write_vidur(vidur)
    if phantora is not None:
        found.write_phantora(phantora)
    if write_json(json_, found.to_json()):
        return
    for line in str(found).split("\n"):
        typer.echo(printable(line))
