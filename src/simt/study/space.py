"""The points of a study: the product of its inputs, GPUs, values, methods and seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import SimtError, SpecError, StudyError
from simt.names import shortened
from simt.options import TraceOptions
from simt.program import find_program
from simt.study.description import (
    OPTIONS,
    WITHOUT_EFFECT,
    InputTable,
    MethodTable,
    Scalar,
    Setting,
    StudyDescription,
)
from simt.study.expression import Expression
from simt.study.inputs import digest_class, digest_files, identity, sources, takes_seed
from simt.workloads import Workload

if TYPE_CHECKING:
    from simt.sampling import Plan
    from simt.spec import Spec

OWN_COLUMNS = ("input", "gpu", "method", "seed")
MOST_POINTS = 10_000_000


@dataclass(frozen=True)
class AxisValue:
    """A value of an axis: as the table shows it, and the fields of the specification that it sets."""

    shown: Scalar
    overrides: Mapping[str, Setting]


@dataclass(frozen=True)
class Axis:
    """Values among which a study chooses: of a field of the specification, or of several that change
    together."""

    name: str
    values: tuple[AxisValue, ...]


@dataclass(frozen=True)
class PointWork:
    """All that a worker needs to simulate a point, or a piece of one.

    input: an absolute path, or the name of an example or a workload. trace: whether it is a trace.
    gpu, overrides: the specification, whose hash is `spec_hash`.
    plan: the JSON of a plan. sample: a controller with its settings. seed: None where nothing takes one.
    options: of `simt run`, by name.
    piece: numbers of the launches to simulate, from 1; None for the whole point.
    """

    input: str
    trace: bool
    driver: str | None
    size: int | None
    kernels: str | None
    gpu: str
    overrides: Mapping[str, Setting]
    spec_hash: str
    plan: str | None
    sample: str | None
    seed: int | None
    options: Mapping[str, Any]
    keep: bool
    piece: tuple[int, ...] | None = None


@dataclass(frozen=True)
class StudyPoint:
    """One simulation of a study.

    columns: what identifies it in tables. work: what is to be done.
    specification: values of the GPU, as JSON. input_hash: of the input's contents.
    digest: SHA-256 over everything that its outcome depends on.
    spread: launches of a piece; None if it is simulated in one piece.
    """

    columns: Mapping[str, Scalar]
    work: PointWork = field(repr=False)
    specification: str = field(repr=False)
    input_hash: str = field(repr=False)
    digest: str
    spread: int | None = None

    @cached_property
    def row(self) -> Mapping[str, Any]:
        """Its columns and the fields of its specification, for expressions."""
        return {**flattened(json.loads(self.specification)), **self.columns}

    @property
    def label(self) -> str:
        """A short text for people."""
        return ", ".join(
            shortened(str(value), 24) if key in OWN_COLUMNS else f"{key}={value}"
            for key, value in self.columns.items()
            if key != "seed"
        )

    def pieces(self) -> list[PointWork]:
        """The work in pieces of `spread` launches each; the whole in one if it is not to be spread."""
        if self.spread is None:
            return [self.work]
        numbers = [position + 1 for position in _positions(self.work)]
        cuts = range(0, len(numbers), self.spread)
        return [replace(self.work, piece=tuple(numbers[i : i + self.spread])) for i in cuts]


class Space:
    """All points of a study. Inputs, plans and specifications are read once each.

    folder: what relative paths in the description start from. file: for messages.

    Raises SimtError where an input, a plan, a profile or a specification cannot be read.
    """

    def __init__(self, description: StudyDescription, folder: Path, file: str) -> None:
        self.description, self._folder, self._file = description, folder, file
        self.axes = _axes(description.set, file)
        names = [_input_name(each) for each in description.inputs]
        self.inputs = dict(zip(_distinct(names, f"{file}: inputs"), description.inputs, strict=True))
        gpus = [Path(each).stem if each.endswith(".toml") else each for each in description.gpus]
        self.gpus = dict(zip(_distinct(gpus, f"{file}: gpus"), description.gpus, strict=True))
        methods = [_method_name(each) for each in description.methods]
        self.methods = dict(zip(_distinct(methods, f"{file}: methods"), description.methods, strict=True))
        self.size = len(self.inputs) * len(self.gpus) * len(self.methods) * len(description.seeds)
        self._varied = {
            name: values for name, values in description.options.model_dump().items() if values is not None
        }
        _without_repeats(description.seeds, f"{file}: seeds")
        for name, values in self._varied.items():
            _without_repeats(values, f"{file}: options.{name}")
        if twice := self._varied.keys() & description.run.model_fields_set:
            raise StudyError(f"{file}: options.{min(twice)}: run.{min(twice)} sets it, too")
        for values in (*(axis.values for axis in self.axes), *self._varied.values()):
            self.size *= len(values)
        self._read: dict[tuple[str, tuple[Any, ...]], Any] = {}

    def points(self) -> list[StudyPoint]:
        """Those for which all constraints hold, in the order of the product: the last axis changes first.

        Of several that differ only in seeds or options that nothing takes, only the first. Raises StudyError
        for others that are the same simulation: a table would have one row for them.
        """
        if self.size > MOST_POINTS:
            raise StudyError(f"{self._file}: {self.size:,} points, expected at most {MOST_POINTS:,}")
        found: dict[str, StudyPoint] = {}
        for point in self._product([axis.values for axis in self.axes]):
            if (first := found.setdefault(point.digest, point)) is not point:
                self._refuse_same(first, point)
        if not found:
            raise StudyError(f"{self._file}: where leaves out all {self.size:,} points")
        return list(found.values())

    def _refuse_same(self, first: StudyPoint, second: StudyPoint) -> None:
        """Raises StudyError for two points of one digest, unless nothing takes what they differ in."""
        untaken = {"seed", *(self._varied.keys() - second.work.options.keys())}
        differ = {key for key in second.columns if first.columns[key] != second.columns[key]} - untaken
        if not differ:
            return
        places = {"input": "inputs", "gpu": "gpus", "method": "methods"}
        places |= {axis.name: f"set.{axis.name}" for axis in self.axes}
        places |= {name: f"options.{name}" for name in self._varied}
        where = ", ".join(places[key] for key in second.columns if key in differ)
        one, other = (
            ", ".join(repr(value) for key, value in point.columns.items() if key in differ)
            for point in (first, second)
        )
        both = ", ".join(
            f"{key}={value}" for key, value in second.columns.items() if key not in differ | untaken
        )
        raise StudyError(
            f"{self._file}: {where}: {one} and {other} are the same simulation ({both}); leave one out"
        )

    def at(self, chosen: Sequence[AxisValue]) -> list[StudyPoint]:
        """The points with one value of each axis, which `where` may leave none of."""
        return list(self._product([(value,) for value in chosen]))

    def of(self, columns: Mapping[str, Any]) -> StudyPoint | None:
        """The point that these columns identify; None if the study has none."""
        chosen = [
            next((value for value in axis.values if value.shown == columns.get(axis.name)), None)
            for axis in self.axes
        ]
        values = [value for value in chosen if value is not None]
        name, gpu, method, seed = (columns.get(key) for key in OWN_COLUMNS)
        known = name in self.inputs and gpu in self.gpus and method in self.methods
        options = {key: columns.get(key) for key in self._varied}
        known = known and all(value in self._varied[key] for key, value in options.items())
        if len(values) < len(self.axes) or not known or seed not in self.description.seeds:
            return None
        point = self._point(str(name), str(gpu), values, options, str(method), int(seed))
        return point if self._wanted(point) else None

    def specification(self, gpu: str, chosen: Sequence[AxisValue]) -> Spec:
        """Of one of the study's GPUs with these values. Raises SpecError."""
        from simt.spec import load_spec

        base = self._once("gpus", (gpu,), lambda: load_spec(self._gpu(gpu)))
        return load_spec(base, self._overrides(chosen))

    def _overrides(self, chosen: Sequence[AxisValue]) -> dict[str, Setting]:
        """All values that are chosen. Files of policies have absolute paths, for workers elsewhere."""
        from simt.policy.outside import located
        from simt.spec import policy_fields

        merged = {path: value for each in chosen for path, value in each.overrides.items()}
        for path in merged.keys() & set(policy_fields()):
            merged[path] = located(str(merged[path]), self._folder)
        return merged

    def _product(self, values: Sequence[Sequence[AxisValue]]) -> Iterator[StudyPoint]:
        for name, gpu in product(self.inputs, self.gpus):
            for chosen in product(*values):
                for options, method, seed in product(self._options(), self.methods, self.description.seeds):
                    point = self._point(name, gpu, chosen, options, method, seed)
                    if self._wanted(point):
                        yield point

    def _options(self) -> Iterator[dict[str, Any]]:
        """Each combination of the options that points differ in."""
        for values in product(*self._varied.values()):
            yield dict(zip(self._varied, values, strict=True))

    def _wanted(self, point: StudyPoint) -> bool:
        return all(_holds(each, point, self._file) for each in self.description.where)

    def _point(
        self,
        name: str,
        gpu: str,
        chosen: Sequence[AxisValue],
        varied: Mapping[str, Any],
        method: str,
        seed: int,
    ) -> StudyPoint:
        run, given = self.description.run, self.inputs[name]
        columns: dict[str, Scalar] = {"input": name, "gpu": gpu}
        columns |= {axis.name: value.shown for axis, value in zip(self.axes, chosen, strict=True)}
        columns |= {**varied, "method": method, "seed": seed}
        overrides = self._overrides(chosen)
        try:
            spec_hash, specification = self._once(
                "", (gpu, json.dumps(overrides)), lambda: _written(self.specification(gpu, chosen))
            )
        except SpecError as error:
            where = ", ".join(f"{key}={value}" for key, value in columns.items())
            raise StudyError(f"{self._file}: point {where}: {error}; `where` can leave it out") from None
        path, trace, digest, seeded = self._once("inputs", (name,), lambda: self._input(given, name))
        how = self.methods[method]
        plan, (sample, code) = self._once(
            "methods", (method, seed), lambda: (self._plan(how, seed), _with_seed(how.sample, seed))
        )
        if how.spread is not None and plan is None and not trace:
            raise StudyError(
                f"{self._file}: {name} with {method}: spread needs a plan or a trace, found a program "
                "without a plan"
            )
        of_trace = TraceOptions.__dataclass_fields__
        options = {key: varied.get(key, getattr(run, key)) for key in OPTIONS if not trace or key in of_trace}
        work = PointWork(
            input=path,
            trace=trace,
            driver=None if given.driver is None else str(self._path(given.driver)),
            size=given.size,
            kernels=given.kernels,
            gpu=self._gpu(gpu),
            overrides=overrides,
            spec_hash=spec_hash,
            plan=plan,
            sample=sample,
            seed=seed if seeded else None,
            options=options,
            keep=run.results,
        )
        depends = [
            identity(),
            digest,
            [given.size, given.kernels, {k: v for k, v in options.items() if k not in WITHOUT_EFFECT}],
            specification,
            [plan, sample, code, how.spread, work.seed],
        ]
        content = hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()
        return StudyPoint(columns, work, specification, digest, content, how.spread)

    def _once(self, place: str, key: tuple[Any, ...], read: Callable[[], Any]) -> Any:
        """What is read for a key of the study, which errors name; "" where they are raised as they are."""
        if (place, key) not in self._read:
            try:
                self._read[place, key] = read()
            except SimtError as error:
                if not place:
                    raise
                raise StudyError(f"{self._file}: {place}: {error}") from None
        return self._read[place, key]

    def _gpu(self, name: str) -> str:
        """What `load_spec` takes for one of the study's GPUs."""
        given = self.gpus[name]
        return str(self._path(given)) if given.endswith(".toml") else given

    def _path(self, text: str) -> Path:
        return (self._folder / text).absolute()

    def _input(self, given: InputTable, name: str) -> tuple[str, bool, str, bool]:
        """Path or name, whether it is a trace, the hash of its contents, and whether it takes a seed."""
        from simt.trace import open_trace
        from simt.trace.trace import LIST_NAMES

        place = self._path(given.input)
        named = Path(given.input)
        program = find_program(place if place.exists() or named.suffix else named)
        further = [self._path(each) for each in given.files]
        if program is None:
            if given.driver is not None or given.size is not None:
                raise StudyError(f"{name}: a trace has neither driver nor size")
            files = {kernel.path for kernel in open_trace(place).kernels}
            lists = [each for each in (place, *(place / name for name in LIST_NAMES)) if each.is_file()]
            folder = place if place.is_dir() else place.parent
            return str(place), True, digest_files([*files, *lists, *further], folder), False
        if given.kernels is not None:
            raise StudyError(f"{name}: kernels is for traces")
        if isinstance(program, Workload) or program != place:  # part of simt, whose identity counts
            return given.input, False, f"{given.input} {digest_files(further, self._folder)}", False
        driver = None if given.driver is None else self._path(given.driver)
        files_of = sources(place, driver)
        script = driver or (place if place.suffix == ".py" else place.with_suffix(".py"))
        return str(place), False, digest_files([*files_of, *further], place.parent), takes_seed(script)

    def _plan(self, method: MethodTable, seed: int) -> str | None:
        """The JSON of the plan that a method asks for."""
        if method.plan is None and method.sampler is None:
            return None
        from simt.profile import read_profile
        from simt.sampling import Plan, registry

        if method.plan is not None:
            return Plan.load(self._path(method.plan)).to_json()
        assert method.sampler is not None and method.profile is not None
        profile = self._path(method.profile)
        population = self._once("methods", (str(profile),), lambda: read_profile(profile).kernels())
        made: Plan = registry.from_text(method.sampler, seed=seed).fit_plan(population)
        return made.to_json()


def _written(spec: Spec) -> tuple[str, str]:
    """Hash and values of a specification."""
    values = {key: value for key, value in spec.values().items() if key != "description"}
    return spec.hash, json.dumps(values)


def flattened(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by their path with dots."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flattened(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _axes(table: Mapping[str, Any], file: str) -> tuple[Axis, ...]:
    from simt.spec import describe

    fields, axes, setting = describe(), [], dict[str, str]()
    for name, given in flattened(table).items():
        place = f"{file}: set.{name}"
        if name in OWN_COLUMNS:
            raise StudyError(f"{place}: the name is that of a column; choose another")
        values = given if isinstance(given, list) else [given]
        if not values:
            raise StudyError(f"{place}: found no value, expected one or several")
        if all(isinstance(value, Mapping) for value in values):
            found = tuple(_bundle(value, f"{place}[{i}]") for i, value in enumerate(values, 1))
        else:
            if wrong := [value for value in values if not _is_setting(value)]:
                raise StudyError(f"{place}: found {wrong[0]!r}, expected {_SETTINGS}")
            found = tuple(
                AxisValue(shown, {name: value}) for shown, value in zip(_alike(values), values, strict=True)
            )
        _without_repeats([value.shown for value in found], place, values)
        for path in dict.fromkeys(path for value in found for path in value.overrides):
            if path not in fields:
                _refuse_field(path, place)
            if path in setting:
                raise StudyError(f"{place}: set.{setting[path]} sets {path}, too")
            setting[path] = name
        axes.append(Axis(name, found))
    return tuple(axes)


_SETTINGS = "a number, text, true or false, or a list of them for a field that takes a list"


def _is_setting(value: Any) -> bool:
    return isinstance(value, Scalar) or (
        isinstance(value, list) and all(isinstance(item, Scalar) for item in value)
    )


def _alike(settings: Sequence[Setting]) -> Sequence[Scalar]:
    """The values as one type, which a column can have: lists as text."""
    values = [json.dumps(value) if isinstance(value, list) else value for value in settings]
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return [float(value) for value in values]
    return values if len(kinds) == 1 else [str(value) for value in values]


def _refuse_field(path: str, place: str) -> None:
    from simt.spec import load_spec

    try:
        load_spec("qv100", {path: 0})
    except SpecError as error:
        raise StudyError(f"{place}: {str(error).partition('override ')[2]}") from None


def _bundle(table: Mapping[str, Any], place: str) -> AxisValue:
    """Fields that change together: `{ name = "half", sm.count = 40, ... }`."""
    fields = flattened(table)
    shown = fields.pop("name", None)
    if not isinstance(shown, str) or not shown:
        raise StudyError(f"{place}: found name {shown!r}, expected text that the table shows")
    if wrong := [key for key, value in fields.items() if not _is_setting(value)]:
        raise StudyError(f"{place}.{wrong[0]}: expected {_SETTINGS}")
    return AxisValue(shown, fields)


def _holds(constraint: Expression, point: StudyPoint, file: str) -> bool:
    try:
        return constraint.holds(point.row)
    except StudyError as error:
        raise StudyError(f"{file}: where: {error}") from None


def _input_name(given: InputTable) -> str:
    path = Path(given.input)
    if given.name:
        return given.name
    stem = path.parent.name if path.stem == "kernelslist" else path.stem
    return stem if given.size is None else f"{stem}-{given.size}"


def _method_name(method: MethodTable) -> str:
    parts = [Path(method.plan).stem if method.plan else method.sampler, method.sample]
    return method.name or " ".join(part for part in parts if part) or "full"


def _without_repeats(values: Sequence[Any], place: str, given: Sequence[Any] | None = None) -> None:
    """Raises StudyError that names two equal values. given: as the study has them."""
    written = [repr(value) for value in given or values]
    first: dict[str, str] = {}
    for value, text in zip(values, written, strict=True):
        before = first.setdefault(json.dumps(value), text)
        if before is not text:
            found = f"{text} occurs twice" if before == text else f"{before} and {text} are the same value"
            raise StudyError(f"{place}: {found}; leave one out")


def _distinct(names: list[str], place: str) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise StudyError(f"{place}: {name!r} occurs twice; give one of them another name")
    return names


def _with_seed(sample: str | None, seed: int) -> tuple[str | None, str]:
    """The controller's text, with the seed if it takes one and does not set it, and the hash of its code."""
    if sample is None:
        return None, ""
    controller, settings = controller_of(sample)
    takes = "seed" in type(controller).parameters() and not any(s.startswith("seed=") for s in settings)
    return (f"{sample} seed={seed}" if takes else sample), digest_class(type(controller))


def controller_of(sample: str) -> tuple[Any, list[str]]:
    """A controller from `METHOD[:VARIANT] parameter=value ...`, and its settings. Raises ControlError."""
    from simt.control.registry import make

    method, *settings = sample.split() or [""]
    return make(method, settings), settings


def _positions(work: PointWork) -> list[int]:
    """The launches of a point that is spread, by their positions from 0."""
    from simt.run.planned import planned
    from simt.sampling import Plan
    from simt.selection import select
    from simt.trace import open_trace

    plan = None if work.plan is None else Plan.from_json(work.plan)
    if not work.trace:
        assert plan is not None
        return [int(position) for position in plan.launches["position"]]
    kernels = open_trace(work.input).kernels
    chosen = select(kernels, work.kernels)
    return chosen if plan is None else planned(plan, [kernel.name for kernel in kernels], chosen)
