"""The options of runs: one record for each kind, from which keywords, command line and study keys follow."""

from __future__ import annotations

import functools
import inspect
import operator
import os
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, get_args

from simt.errors import ControlError, LaunchError, SimtError
from simt.selection import Selection, canonical

if TYPE_CHECKING:
    from typing_extensions import Self

    from simt.control import Controller
    from simt.policy import Policy
    from simt.power import Power
    from simt.result import Result
    from simt.sampling import Plan
    from simt.spec import Spec

    from .progress import Progress

DEFAULT_GPU = "h100"
"""The GPU of everything that simulates, where none is named."""

Code = Literal["ptx", "sass"]
TensorArithmetic = Literal["hardware", "exact"]
_GPU_HELP = "GPU specification: a name listed by `simt gpus`, or a TOML file."


def whole_option(name: str, value: Any, least: int = 1, most: int = (1 << 63) - 1) -> int:
    """Raises SimtError unless the value is a whole number within these bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise SimtError(f"{name} is {value!r}, expected a whole number") from None
    if not least <= number <= most:
        raise SimtError(
            f"{name} is {number}, expected {least} or more" + f", up to {most:,}" * (number > most)
        )
    return number


@dataclass(frozen=True)
class OnCommandLine:
    """How an option is written on the command line.

    flags: its names; by default its own, such as --max-cycles. metavar: of its value.
    type, default: of its value; by default as in Python. read: makes Python's value of it.
    of: what it is for, where a command takes traces and programs.
    """

    flags: tuple[str, ...] = ()
    metavar: str | None = None
    type: Any = None
    default: Any = ...
    read: Callable[[Any], Any] | None = None
    of: str = ""


def option(
    default: Any,
    help: str,
    in_python: str = "",
    *,
    shell: OnCommandLine | None = None,
    least: int | None = None,
    most: int = (1 << 63) - 1,
    study: Any = None,
) -> Any:
    """A field of a record of options.

    help: what it does, for the docstring and for --help. in_python: more for the docstring. shell: None if it
        is for Python only.
    least, most: bounds of a whole number. study: its type as a key of a study file's table `run`; None: it is
        none.
    """
    return field(
        default=default,
        metadata={
            "help": help,
            "in_python": in_python,
            "shell": shell,
            "least": least,
            "most": most,
            "study": study,
        },
    )


def _read_plan(path: Path) -> Plan:
    from simt.sampling import Plan

    return Plan.load(path)


def share(text: str) -> float:
    """`5%` or `0.05` as a number. Raises ControlError."""
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise ControlError(f"--verify {text}: expected a share above 0 and up to 1, such as 5% or 0.05")
    return found


@dataclass(frozen=True)
class Options:
    """What runs of traces and programs share. Raises SimtError for a value that is out of bounds."""

    _: KW_ONLY
    set: Mapping[str, Any] | Iterable[str] | None = option(
        None,
        "Values that override the specification, by their path in it, such as sm.count=40; several.",
        '{"sm.count": 40} or ["sm.count=40"].',
        shell=OnCommandLine(("--set",), "KEY=VALUE", list[str] | None),
    )
    threads: int = option(
        1,
        "Host threads, at most as many as there are cores. Results do not depend on them.",
        shell=OnCommandLine(),
        least=1,
        study=int,
    )
    max_cycles: int | None = option(
        None,
        "Stop after about this many core cycles of timed launches; those that had finished are kept.",
        shell=OnCommandLine(),
        least=1,
    )
    timeout: float | None = option(
        None,
        "Stop after about this many seconds; launches that had finished are kept.",
        shell=OnCommandLine(metavar="SECONDS"),
        study=float | None,
    )
    timeline: int | None = option(
        None,
        "Sample a timeline at this interval, in core cycles.",
        shell=OnCommandLine(metavar="CYCLES"),
        least=1,
    )
    window: int | None = option(
        None,
        "Cycles that SMs simulate independently, by default the most. Results do not depend on it.",
        least=0,
        most=(1 << 32) - 1,
    )
    progress: Callable[[Progress], None] | bool | None = option(
        None,
        "True for a progress bar on the terminal (otherwise a line every 30 seconds), or a function that "
        "is called a few times a second.",
    )
    output: str | os.PathLike[str] | None = option(
        None,
        "Save the Result there: a directory (Parquet, JSON) or a .json file. Launches are written as they "
        "finish, so they are kept whatever happens next: `Result.load` reads them.",
        shell=OnCommandLine(("--output", "-o"), "PATH", Path | None),
    )
    resume: Result | bool = option(
        False,
        "Continue the interrupted run with this output: its launches are kept; caches start afresh.",
        "True, or a Result of the same input and specification.",
        shell=OnCommandLine(("--resume",), type=bool),
    )
    policies: Mapping[str, Policy] | None = option(
        None,
        "Python functions in place of built-in policies: scheduler, l1_replacement, l2_replacement, "
        "slice_hash (see simt.policy).",
    )
    controller: Controller | str | None = option(
        None,
        "Simulate less of each launch: scale-model, systematic, photon (:block, :warp, :kernel), pkp, or pka "
        "with a plan, which state an interval of the cycles; photon-published, pkp:paper, pkp:artifact (as "
        "published), tbpoint, or first-n:N, which state none; or package.module:Class.",
        "Or a `simt.control.Controller`. None: all of it.",
        shell=OnCommandLine(("--sample",), "METHOD[:VARIANT]", str | None),
    )
    plan: Plan | Collection[int] | None = option(
        None,
        "Time only the launches of a plan made by `simt sample`. The others warm the caches; the Result has "
        "estimated totals with their errors.",
        "A `simt.sampling.Plan`, or numbers of launches, from 1.",
        shell=OnCommandLine(metavar="FILE", type=Path | None, read=_read_plan),
    )
    launches: Selection = option(
        None,
        "Time only these launches (numbers from 1, ranges, names, name~TEXT, /regular expressions/); the "
        "others warm the caches.",
        shell=OnCommandLine(metavar="SELECTION", type=str | None),
    )
    power: Power = option(
        False,
        "Energy of each launch in the Result, by the energies of this GPU.",
        "Or the name of the GPU whose energies to use, a TOML file, or `simt.power.Energies`.",
        shell=OnCommandLine(("--power",), type=bool),
        study=bool,
    )
    clock: float | None = option(
        None,
        "Core clock in MHz, in place of the specification's; L2 and network follow if they have the same.",
        shell=OnCommandLine(metavar="MHZ"),
        study=float | None,
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            value, least = getattr(self, one.name), one.metadata["least"]
            if least is not None and value is not None:
                object.__setattr__(self, one.name, whole_option(one.name, value, least, one.metadata["most"]))

    @property
    def region(self) -> list[str]:
        """What is timed, for a Result's provenance; empty: everything."""
        text = canonical(self.launches)
        return [] if text is None else [f"launches({text})"]

    def in_full(self) -> Self:
        """Of a run without controller, plan and limits, whose Result is not kept."""
        without = ("controller", "plan", "launches", "capture_range", "verify")
        aside = ("output", "resume", "timeline", "power", "max_cycles", "timeout")
        defaults: dict[str, Any] = {one.name: one.default for one in fields(self)}
        return replace(self, **{name: defaults[name] for name in without + aside if name in defaults})

    def keywords(self) -> dict[str, Any]:
        """Its values other than defaults, for a function that takes such options."""
        every = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {name: value for name, (value, default) in every.items() if value is not default}


@dataclass(frozen=True)
class TraceOptions(Options):
    """Of `simt.simulate`."""

    gpu: str | os.PathLike[str] | Spec = option(
        DEFAULT_GPU, _GPU_HELP, "Or a `simt.spec.Spec`.", shell=OnCommandLine(type=str)
    )
    _: KW_ONLY
    kernels: Selection = option(
        None,
        "Launches of a trace to simulate: ids, ranges, names, /regular expressions/. All copies to the GPU "
        "are still made.",
        shell=OnCommandLine(type=str | None, of="traces"),
    )
    verify: float = option(
        0.0,
        "Share of the launches cut short by the controller that are also simulated in full, such as 5%; "
        "the Result has the errors. A program then runs a second time.",
        shell=OnCommandLine(metavar="PERCENT", type=str | None, default=None, read=share),
    )
    seed: int = option(0, "Seed for the launches that are verified.", shell=OnCommandLine())
    outside: bool = option(
        False,
        "Allow a launch list to name files outside its folder.",
        shell=OnCommandLine(("--outside",), of="traces"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.verify and self.controller is None:
            raise SimtError("verify needs a controller, whose projections it checks")


@dataclass(frozen=True)
class ExecutionOptions(Options):
    """What runs of programs share."""

    _: KW_ONLY
    functional: bool = option(
        False,
        "Compute only the program's values, without timing: about a thousand times as fast.",
        shell=OnCommandLine(("--functional",), of="programs"),
    )
    code: Code = option(
        "ptx",
        "What is executed where there is a choice: PTX (machine code only where a program holds no PTX), "
        "or machine code (sass), which ptxas makes where a program holds none (extra cuda).",
        shell=OnCommandLine(of="programs"),
        study=Code,
    )
    fmad: bool = option(
        True,
        "Contract products and sums without a rounding modifier to fma where nvcc does; also an option of "
        "`compile` and `load`.",
        study=bool,
    )
    tensor_arithmetic: TensorArithmetic = option(
        "hardware",
        "How tensor cores add: as the GPU's do, to the bit, where that is known (hardware), or in double "
        "precision, rounded once (exact).",
        shell=OnCommandLine(of="programs"),
        study=TensorArithmetic,
    )
    check: bool | str | None = option(
        None,
        "Look for races, uninitialised memory, misused barriers, memory errors and leaks instead of timing: "
        "all, or some of race, init, sync, memory, leak and weak (docs/check.md).",
        "True for all but weak, or names separated by commas; `GPU.findings` has what was found.",
        shell=OnCommandLine(metavar="CHECKS", type=str | None, of="programs"),
    )
    capture_range: str | None = option(
        None,
        "Time only launches within ranges of this name (a pattern, name~TEXT or /regular expression/); nvtx: "
        "within any; cudaProfilerApi: from cudaProfilerStart to cudaProfilerStop.",
        "Ranges are those of `GPU.range` and of NVTX. With `launches`, those that are in both.",
        shell=OnCommandLine(("--capture-range",), "NAME", of="programs"),
        study=str | None,
    )
    memory: int | None = option(
        None,
        "Bytes of device memory, by default the specification's; only the part that is used takes host "
        "memory.",
        least=1,
        most=1 << 40,
    )
    exact_bounds: bool = option(
        False,
        "Kernels may access only the bytes that were allocated. By default, as on hardware, they may also "
        "access what CUDA's allocators round them up to: a multiple of 512 bytes.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.check:
            from simt.check import checks_of

            checks_of(self.check)
        for name, choices in (("code", Code), ("tensor_arithmetic", TensorArithmetic)):
            if (value := getattr(self, name)) not in get_args(choices):
                raise LaunchError(
                    f"{name} is {value!r}, expected {' or '.join(map(repr, get_args(choices)))}"
                )
        if self.untimed and self.max_cycles is not None:
            raise LaunchError(f"{self.untimed} computes values only, without cycles: leave out max_cycles")
        if self.untimed and self.region:
            raise LaunchError(f"{self.untimed} times no launch: leave out launches and capture_range")

    @property
    def untimed(self) -> str:
        """The option for which nothing is timed; empty if launches are."""
        return "functional=True" if self.functional else f"check={self.check!r}" if self.check else ""

    @property
    def region(self) -> list[str]:
        found = super().region
        return found if self.capture_range is None else [*found, f"range({self.capture_range})"]


@dataclass(frozen=True)
class GpuOptions(ExecutionOptions):
    """Of `simt.GPU`."""

    gpu: str | os.PathLike[str] | Spec = option(
        DEFAULT_GPU, _GPU_HELP, "Or a `simt.spec.Spec`.", shell=OnCommandLine(type=str)
    )


@dataclass(frozen=True)
class ExecOptions(ExecutionOptions):
    """Of `simt.exec.run`."""

    gpu: str | os.PathLike[str] | Spec | Sequence[str | os.PathLike[str] | Spec] | None = option(
        None,
        "Name or TOML file of a GPU; comma-separated for several devices. [default: h100, or that of the "
        "checkpoint]",
        "A list for several devices.",
        shell=OnCommandLine(type=str | None),
    )
    _: KW_ONLY
    checkpoint_at: str | None = option(
        None,
        "Execute the launches before number N (from 1) without timing, its CTAs before M (from 0), and I "
        "instructions of each warp of the next T CTAs; write a checkpoint, and end the program.",
        shell=OnCommandLine(metavar="launch=N[,cta=M][,instruction=I[,ctas=T]]"),
    )
    checkpoint: str | os.PathLike[str] | None = option(
        None, "The new directory of that checkpoint.", shell=OnCommandLine(metavar="DIR", type=Path | None)
    )
    resume_from: str | os.PathLike[str] | None = option(
        None,
        "Run the program from a checkpoint: earlier launches are not executed again; the rest is timed.",
        shell=OnCommandLine(metavar="DIR", type=Path | None),
    )
    profile: str | os.PathLike[str] | None = option(
        None,
        "Execute without timing, and save what each launch executes (Parquet), for `simt sample`; further "
        "devices and processes have numbered files.",
        shell=OnCommandLine(metavar="FILE.parquet", type=Path | None),
    )
    env: Mapping[str, str] | None = option(
        None, "The program's environment, by default that of this process."
    )
    name: str | None = option(
        None, "What Results call the program, by default the file of each of its processes."
    )

    @property
    def untimed(self) -> str:
        for name in ("profile", "checkpoint_at"):
            if getattr(self, name) is not None:
                return name
        return super().untimed


P = ParamSpec("P")
Subject = TypeVar("Subject")
Record = TypeVar("Record")
Returned = TypeVar("Returned")


def keywords_of(
    record: Callable[P, Record],
) -> Callable[[Callable[[Subject, Record], Returned]], Callable[Concatenate[Subject, P], Returned]]:
    """Decorates a function of a subject and a record of options: its callers give the options as keywords.

    Its docstring's `{options}` becomes what they do.
    """

    def decorate(body: Callable[[Subject, Record], Returned]) -> Callable[Concatenate[Subject, P], Returned]:
        @functools.wraps(body)
        def function(subject: Subject, /, *args: P.args, **kwargs: P.kwargs) -> Returned:
            return body(subject, record(*args, **kwargs))

        own, *_ = inspect.signature(body).parameters.values()
        taken = list(inspect.signature(record).parameters.values())
        returned = inspect.signature(body).return_annotation
        signature = inspect.Signature([own, *taken], return_annotation=returned)
        vars(function)["__signature__"] = signature  # what `inspect` and `help` show
        function.__doc__ = documented(body.__doc__, record)
        return function

    return decorate


def documented(text: str | None, record: Any) -> str | None:
    """A docstring with what its `{options}` stands for."""
    if text is None:
        return None
    texts = (f"{one.name}: {one.metadata['help']} {one.metadata['in_python']}" for one in fields(record))
    lines = "\n".join(textwrap.fill(each, 108, subsequent_indent="    ") for each in texts)
    return inspect.cleandoc(text).replace("{options}", lines)
