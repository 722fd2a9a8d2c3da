"""Options of commands that follow from records of options (`simt.options`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.models import ArgumentInfo

from simt import options
from simt.cli import completion
from simt.errors import ControlError, LaunchError
from simt.options import ExecOptions, OnCommandLine, Options, TraceOptions
from simt.result import Result

SampleSet = Annotated[
    list[str] | None,
    typer.Option("--sample-set", metavar="KEY=VALUE", help="A parameter of --sample; repeatable."),
]
Full = Annotated[
    Path | None,
    typer.Option(metavar="RESULT", help="A saved full Result of the same input to compare with."),
]
Energies = Annotated[
    str | None,
    typer.Option(
        metavar="GPU|FILE", help="The same by the energies of another GPU (`simt power gpus`) or a TOML file."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor the table.")]

Record = TypeVar("Record", bound=Options)


_COMPLETED: dict[str, Callable[..., list[str]]] = {
    "gpu": completion.gpus,
    "set": completion.fields,
    "kernels": completion.kernels,
    "launches": completion.kernels,
}


def takes(
    *records: type[Options], only: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command: the options of these records take the place of its `**options`.

    only: names of the options that it has; by default all that the command line can have.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def taking(**values: Any) -> None:
            command(**values)

        *own, _ = inspect.signature(command, eval_str=True).parameters.values()
        own = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in own]
        arguments = [each for each in own if isinstance(each.annotation.__metadata__[0], ArgumentInfo)]
        every = {one.name: _parameter(one, records) for one in _fields(*records).values()}
        made = [every[name] for name in only or every]
        parameters = [*arguments, *made, *(each for each in own if each not in arguments)]
        # What it wraps would give its signature.
        facts = {"__signature__": inspect.Signature(parameters), "__wrapped__": None}
        vars(taking).update(facts)
        taking.__annotations__.clear()  # they are in the signature
        return taking

    return decorate


def read(
    values: Mapping[str, Any],
    sample_set: list[str] | None = None,
    energies: str | None = None,
    full: Path | None = None,
) -> dict[str, Any]:
    """Python's values of the options that a command was given, by name. Raises SimtError."""
    sample = values.get("controller")
    if sample is None and (sample_set or values.get("verify") or full):
        raise ControlError("--sample-set, --verify and --full need --sample")
    if sample is not None and sample.partition(":")[0] == "pka" and values.get("plan") is None:
        raise ControlError("--sample pka needs --plan: a file that `simt sample --output` wrote")
    found = {}
    for name, one in _fields(TraceOptions, ExecOptions).items():
        if name in values:
            value, shell = values[name], one.metadata["shell"]
            if value is None:  # not given; None unless Python has another default
                found[name] = None if shell.default is ... else one.default
            else:
                found[name] = shell.read(value) if shell.read else value
    if sample is not None:
        from simt.control.registry import make

        found["controller"] = make(sample, sample_set or [])
    if energies is not None:
        found["power"] = energies
    return found


def record_of(record: type[Record], values: Mapping[str, Any], refusal: str) -> Record:
    """A record of the values that it has. refusal: of an option that was given and is not in it, after the
    option's flag; empty: these are left out. Raises LaunchError."""
    own = {one.name for one in fields(record)}
    every = _fields(TraceOptions, ExecOptions)
    for name, value in values.items():
        if refusal and name in every and name not in own and value != every[name].default:
            raise LaunchError(refusal.format(flag(every[name])))
    return record(**{name: value for name, value in values.items() if name in own})


def compared(result: Result, full: Path | None, plan: Any) -> Result:
    """A Result with its errors against the full Result saved there, where one is given."""
    if full is None:
        return result
    from simt.control.accuracy import with_accuracy

    found = with_accuracy(result, plan, full=Result.load(full))
    return replace(found, sampling={**(found.sampling or {}), **(result.sampling or {})})


def flag(one: Field[Any]) -> str:
    """The first name of an option on the command line."""
    shell: OnCommandLine = one.metadata["shell"]
    return shell.flags[0] if shell.flags else "--" + one.name.replace("_", "-")


def _fields(*records: type[Options]) -> dict[str, Field[Any]]:
    """The options that the command line can have, the GPU first; of several records' the first one's."""
    every = {one.name: one for record in reversed(records) for one in fields(record) if one.metadata["shell"]}
    return {one.name: one for one in sorted(every.values(), key=lambda one: bool(one.kw_only))}


def _parameter(one: Field[Any], records: Collection[type[Options]]) -> inspect.Parameter:
    shell: OnCommandLine = one.metadata["shell"]
    about = typer.Option(
        *shell.flags,
        metavar=shell.metavar,
        min=one.metadata["least"],
        help=one.metadata["help"],
        autocompletion=_COMPLETED.get(one.name),
        rich_help_panel=f"Options of {shell.of}" if shell.of and len(records) > 1 else None,
    )
    type_ = shell.type or eval(str(one.type), vars(options))
    default = one.default if shell.default is ... else shell.default
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type_, about]
    )
