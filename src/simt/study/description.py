"""What a study file says: its keys, their types, and one clear error for each mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from simt.errors import StudyError
from simt.files import read_toml
from simt.hints import did_you_mean
from simt.options import DEFAULT_GPU, GpuOptions
from simt.study.expression import Expression

Scalar = bool | int | float | str
Setting = Scalar | list[Scalar]
"""What a field of a specification is set to."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


def _expression(value: Any) -> Any:
    try:
        return Expression(value) if isinstance(value, str) else value
    except StudyError as error:
        raise ValueError(str(error)) from None  # pydantic adds the place


def _several(value: Any) -> Any:
    """One value where several may be is a list of one."""
    return value if isinstance(value, list) else [value]


Formula = Annotated[Expression, BeforeValidator(_expression)]
Formulas = Annotated[list[Formula], BeforeValidator(_several)]
Positive = Annotated[float, Field(gt=0, strict=False, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1 << 31)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]


class InputTable(_Table):
    """A program or a trace.

    input: what `simt run` takes: a file, a folder with a launch list, the name of an example or a workload.
    name: what the study calls it; by default the file's or the program's name.
    driver, size, kernels: options of `simt run`.
    files: further files that it reads: a change of one makes its points new.
    """

    input: str
    name: str = ""
    driver: str | None = None
    size: int | None = None
    kernels: str | None = None
    files: list[str] = []


class MethodTable(_Table):
    """How much of an input is simulated.

    sample: a controller as in `simt run --sample`, and its settings: `photon`, `pkp:paper threshold=0.5`.
    plan: file of a plan. sampler, profile: makes a plan of a profile instead: `stem error=0.05`.
    spread: with a plan or a trace, this many launches are simulated at a time, each such piece on any worker.
        None: all one after the other.
    name: what the study calls it.
    """

    name: str = ""
    sample: str | None = None
    plan: str | None = None
    sampler: str | None = None
    profile: str | None = None
    spread: Count | None = None

    @model_validator(mode="after")
    def _together(self) -> MethodTable:
        if (self.sampler is None) != (self.profile is None):
            raise ValueError("sampler and profile go together: a sampler makes a plan of a profile")
        if self.plan is not None and self.sampler is not None:
            raise ValueError("found both plan and sampler, expected one of them")
        return self


def _input(value: Any) -> Any:
    return {"input": value} if isinstance(value, str) else value


def _method(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {"name": "full"} if value == "full" else {"sample": value}


class _Run(_Table):
    """How each point is simulated: options of `simt run`.

    timeout: seconds after which a point is given up.
    results: keep the Result of each point, with its launches.
    """

    results: bool = False


# Types of options in TOML, by their type in Python.
_IN_TOML: Mapping[Any, Any] = {int: Count, float | None: Positive | None}
OPTIONS: dict[str, Any] = {
    one.name: (_IN_TOML.get(one.metadata["study"], one.metadata["study"]), one.default)
    for one in fields(GpuOptions)
    if one.metadata["study"] is not None
}
"""The options of `simt run` that a study can set: type and default."""
WITHOUT_EFFECT = frozenset({"threads", "timeout"})
"""Those on which no outcome depends."""


def _lists() -> dict[str, Any]:
    varied = {name: type_ for name, (type_, _) in OPTIONS.items() if name not in WITHOUT_EFFECT}
    return {
        name: (Annotated[list[type_], BeforeValidator(_several), Field(min_length=1)] | None, None)  # type: ignore[valid-type]
        for name, type_ in varied.items()
    }


Run: Any = create_model("Run", __base__=_Run, **OPTIONS)
Varied: Any = create_model(
    "Varied",
    __base__=_Table,
    **_lists(),
)


class Workers(_Table):
    """Where points are simulated.

    kind: `processes` and `threads` of this machine, `hosts` reached by ssh, or a provider of Parsl: `slurm`,
        `condor`, `pbs`, `torque`, `grid-engine`, `lsf`, `kubernetes`. `package.module:function` returns a
        parsl.Config.
    count: workers of this machine, of each host, or of each node of a cluster; by default one for each core.
    hosts: names for ssh.
    options: arguments of the provider's class, such as `partition`, `walltime`, `nodes_per_block`.
    launcher: class of parsl.launchers that starts the workers of a job, with `launcher_options`.
    python: command of Python on the workers; by default this one.
    batch_seconds: about how long the points of one task take together; longer points are tasks by themselves.
    """

    kind: str = "processes"
    count: Count | None = None
    hosts: Annotated[list[str], Field(min_length=1)] | None = None
    options: dict[str, Any] = {}
    launcher: str | None = None
    launcher_options: dict[str, Any] = {}
    python: str | None = None
    batch_seconds: Positive = 1.0

    @model_validator(mode="after")
    def _together(self) -> Workers:
        if (self.kind == "hosts") != (self.hosts is not None):
            raise ValueError('hosts and kind = "hosts" go together')
        return self


class SearchTable(_Table):
    """What `simt study optimise` looks for, among the values of `set`.

    minimise, maximise: expressions; several give a Pareto front. Each is evaluated for each input, GPU,
        method and seed, and then taken `across` them.
    within: constraints. Those that need no simulation are checked before it.
    trials: how many assignments are tried. together: how many are chosen before the next ones learn of them.
    sampler: an Optuna sampler: tpe, random, nsga2. seed: its seed.
    """

    minimise: Formulas = []
    maximise: Formulas = []
    within: Formulas = []
    across: Literal["geomean", "mean", "sum", "max", "min"] = "geomean"
    trials: Count = 100
    together: Count = 8
    sampler: Literal["tpe", "random", "nsga2"] = "tpe"
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0

    @model_validator(mode="after")
    def _something(self) -> SearchTable:
        if not self.minimise and not self.maximise:
            raise ValueError("found neither minimise nor maximise, expected an expression such as 'cycles'")
        return self


class Show(_Table):
    """What tables and the page show. columns: expressions. minimise, maximise: axes of the Pareto front."""

    columns: Formulas = []
    minimise: Formulas = []
    maximise: Formulas = []


class StudyDescription(_Table):
    """The keys of a study file.

    inputs: programs and traces. gpus: names or TOML files.
    methods: how much is simulated: `full`, or controllers and plans.
    seeds: for samplers, controllers and programs that take one.
    set: values that override the specification: each key is a field and its values, or a name and tables of
        fields that change together.
    where: expressions that hold for every point of the study; the others are left out.
    run: options of `simt run` that hold for all points. options: those of which points have different values.
    results: folder of the results, by default that of the study file with the ending `.results`.
    share: a folder in which finished points are shared with others, besides the cache.
    """

    description: str = ""
    inputs: Annotated[list[Annotated[InputTable, BeforeValidator(_input)]], Field(min_length=1)]
    gpus: Annotated[list[str], Field(min_length=1)] = [DEFAULT_GPU]
    methods: Annotated[list[Annotated[MethodTable, BeforeValidator(_method)]], Field(min_length=1)] = [
        MethodTable(name="full")
    ]
    seeds: Annotated[list[Seed], Field(min_length=1)] = [0]
    set: dict[str, Any] = {}
    where: Formulas = []
    results: str | None = None
    share: str | None = None
    run: Run = Run()
    options: Varied = Varied()
    workers: Workers = Workers()
    search: SearchTable | None = None
    show: Show = Show()


def read_keys(path: Path) -> dict[str, Any]:
    """The keys of a study file, for `describe`. Raises StudyError where it is no TOML."""
    return read_toml(path, "a study", StudyError)


def describe(values: Mapping[str, Any], file: str) -> StudyDescription:
    """The description from plain values, as TOML gives them.

    file: for messages. Raises StudyError that names file, key, what was found and what was expected.
    """
    try:
        return StudyDescription.model_validate(dict(values))
    except ValidationError as error:
        raise StudyError("\n".join(f"{file}: {line}" for line in _explained(error))) from None
    except (StudyError, RecursionError) as error:
        raise StudyError(f"{file}: {error}") from None


def _explained(error: ValidationError) -> Iterator[str]:
    for item in error.errors():
        path = _place(item["loc"])
        found = _short(item["input"])
        if item["type"] == "missing":
            yield f"{path}: missing"
        elif item["type"] == "extra_forbidden":
            yield f"{path}: unknown key{_known(item['loc'])}"
        elif item["type"] in ("model_type", "model_attributes_type"):
            yield f"{path}: found {found}, expected a table"
        elif item["type"] == "is_instance_of":
            yield f"{path}: found {found}, expected an expression as text"
        elif item["type"] == "value_error":
            yield f"{path}: {item['ctx']['error']}"
        else:
            message = item["msg"].replace("Input should be", "expected")
            yield f"{path}: found {found}, {message[0].lower()}{message[1:]}"


def _place(location: tuple[Any, ...]) -> str:
    """`inputs[2].size`; items count from 1."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            text += f".{part}" if text else str(part)
    return text or "study"


def _known(location: tuple[Any, ...]) -> str:
    """The keys that there are at the place of an unknown one."""
    tables: dict[str, type[BaseModel]] = {
        "inputs": InputTable,
        "methods": MethodTable,
        "run": Run,
        "options": Varied,
        "workers": Workers,
        "search": SearchTable,
        "show": Show,
    }
    table = tables[location[0]] if len(location) > 1 else StudyDescription
    known = list(table.model_fields)
    return did_you_mean(str(location[-1]), known) or f"; there are {', '.join(known)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
