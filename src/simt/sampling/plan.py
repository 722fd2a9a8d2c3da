"""Plan: which launches to simulate, with what weight, and how wrong the total can be."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta

from simt.errors import PlanError
from simt.files import require_file, write_text
from simt.methods import Method
from simt.written import Amount, Count, WrittenAs, json_schema, written

if TYPE_CHECKING:
    from simt.sampling.estimate import Estimate

SCHEMA = "simt.plan/1"

_Small = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_Ratio = Annotated[float, WrittenAs(float | None)]


class PlanLaunch(msgspec.Struct, kw_only=True):
    """A row of `Plan.launches`."""

    launch: Annotated[Count, Meta(description="Id in the profile.")]
    position: Annotated[
        Count | None, Meta(description="Kernels that the program launches before it; null: its id.")
    ] = None
    name: str
    stratum: Annotated[_Small, Meta(description="Number of its stratum.")]
    draws: Annotated[
        int,
        Meta(
            ge=1,
            le=2**32 - 1,
            description="How often it was drawn; above 1 only for sampling with replacement.",
        ),
    ]
    weight: Annotated[
        Amount, Meta(description="In the total, all draws together: total = sum weight * value.")
    ]
    time_ns: Annotated[Amount, Meta(description="Profiled duration, ns.")]


class PlanStratum(msgspec.Struct):
    """A row of `Plan.strata`."""

    stratum: Annotated[_Small, Meta(description="Number.")]
    name: Annotated[str, Meta(description="Kernel name, or what its launches have in common.")]
    launches: Annotated[Count, Meta(description="In the population.")]
    draws: Annotated[Count, Meta(description="From it.")]
    time_ns: Annotated[Amount, Meta(description="Of all its launches, ns.")]
    cov: Annotated[Amount | None, Meta(description="Standard deviation over mean of its profiled times.")]
    why: Annotated[str, Meta(description="What made it a stratum and gave it so many draws.")]


class PlanOrder(msgspec.Struct):
    """A row of `Plan.order`."""

    launch: Annotated[Count, Meta(description="Id in the profile.")]
    name: str
    stratum: Annotated[_Small, Meta(description="Number of its stratum.")]
    time_ns: Annotated[Amount, Meta(description="Profiled duration, ns.")]
    ctas: Annotated[Count | None, Meta(description="Of its grid; null: not known.")]
    stream: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    after: Annotated[list[Count], Meta(description="Launches of other streams that it waits for.")]


def _kinds(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    """The alternatives of a type."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return _kinds(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        return [each for part in kind.types for each in _kinds(part)]
    return [kind]


def _columns_of(row: type[msgspec.Struct]) -> dict[str, pl.DataType]:
    """The columns of a table of such rows."""
    inspect = msgspec.inspect
    found: dict[str, pl.DataType] = {}
    for name, hint in get_type_hints(row, include_extras=True).items():
        kinds = _kinds(inspect.type_info(hint))
        if any(isinstance(each, inspect.FloatType) for each in kinds):
            found[name] = pl.Float64()
        elif any(isinstance(each, inspect.ListType) for each in kinds):
            found[name] = pl.List(pl.UInt64())
        elif any(isinstance(each, inspect.StrType) for each in kinds):
            found[name] = pl.String()
        else:
            ((least, most),) = ((each.ge, each.le) for each in kinds if isinstance(each, inspect.IntType))
            if least is not None and least < 0:
                found[name] = pl.Int64()
                continue
            found[name] = pl.UInt32() if most is not None and most < 2**32 else pl.UInt64()
    return found


LAUNCH_COLUMNS, STRATUM_COLUMNS = _columns_of(PlanLaunch), _columns_of(PlanStratum)
ORDER_COLUMNS = _columns_of(PlanOrder)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The result of a sampler. Its fields are those of its file, which `simt.plan-1.schema.json` describes.

    method, parameters, seed, version: sufficient to make the same Plan again from the same profile.
    launches: columns LAUNCH_COLUMNS, one row per distinct launch, in launch order. If `position` is missing,
        it is the launch's id, which counts from 0.
    order: columns ORDER_COLUMNS, one row per launch of the population, in launch order.
    strata: columns STRATUM_COLUMNS; every launch of the population is in exactly one stratum.
    claimed_error: it applies to the profiled metric on the profiled GPU; 0.05 is 5 %.
    fitted: learned facts (K, error per K, hold-out accuracy, ...), JSON values only.
    """

    method: Annotated[str, Meta(description="The sampler that chose.")]
    parameters: Annotated[
        Mapping[str, Any], Meta(description="Constructor parameters of the sampler, without the seed.")
    ]
    seed: Annotated[int | None, Meta(description="Of the random draws; null for a method without.")]
    version: Annotated[str, Meta(description="Of simt.")] = ""
    gpu: Annotated[str | None, Meta(description="On which the profile was taken.")] = None
    source: Annotated[str, Meta(description="The profile's file.")] = "profile"
    population: Annotated[Count, Meta(description="Launches that the plan stands for.")]
    population_ns: Annotated[Amount, Meta(description="Their time in the profile, ns.")]
    replacement: Annotated[bool, Meta(description="Whether a launch could be drawn more than once.")] = False
    claimed_error: Annotated[
        Amount | None,
        Meta(
            description="Half width of the relative error of the profiled total at `confidence`; null where "
            "the method claims none."
        ),
    ] = None
    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    fitted: Annotated[Mapping[str, Any], Meta(description="What the method learned.")] = field(
        default_factory=dict
    )
    warnings: tuple[str, ...] = ()
    expected: Annotated[
        bool,
        Meta(
            description="Whether times are expected from what launches execute, not measured; nothing is "
            "then claimed."
        ),
    ] = False
    ctas: Annotated[
        Mapping[str, Count] | None,
        Meta(description="CTAs of the population's launches by kernel; null where the profile has no grids."),
    ] = None
    streams: Annotated[
        Count | None, Meta(description="In which the launches are; null where the profile does not say.")
    ] = None
    order: Annotated[
        pl.DataFrame | None,
        WrittenAs(list[PlanOrder] | None),
        Meta(
            description="All launches of the population with what they wait for; null where they are in one "
            "stream, or where this is not known."
        ),
    ] = None
    strata: Annotated[pl.DataFrame, WrittenAs(list[PlanStratum])]
    launches: Annotated[pl.DataFrame, WrittenAs(list[PlanLaunch])]

    def __post_init__(self) -> None:
        for attribute, columns in (("launches", LAUNCH_COLUMNS), ("strata", STRATUM_COLUMNS)):
            frame: pl.DataFrame = getattr(self, attribute)
            if attribute == "launches" and "position" not in frame.columns and "launch" in frame.columns:
                frame = frame.with_columns(pl.col("launch").alias("position"))
            missing = [name for name in columns if name not in frame.columns]
            if missing:
                raise PlanError(f"plan: {attribute} has no column {', '.join(missing)}")
            frame = frame.select(pl.col(name).cast(dtype) for name, dtype in columns.items())
            object.__setattr__(self, attribute, frame)
        launches = self.launches.sort("launch").with_columns(pl.col("position").fill_null(pl.col("launch")))
        if launches["launch"].n_unique() != len(launches):
            raise PlanError("plan: a launch occurs twice")
        if self.strata["stratum"].n_unique() != len(self.strata):
            raise PlanError("plan: a stratum occurs twice")
        if not launches["stratum"].is_in(self.strata["stratum"].implode()).all():
            raise PlanError("plan: a launch belongs to a stratum that does not exist")
        if not (launches["weight"].is_finite() & (launches["weight"] >= 0)).all():
            raise PlanError("plan: a weight is negative or not a number")
        object.__setattr__(self, "launches", launches)
        if self.order is not None:
            self._check_order(self.order)

    def _check_order(self, order: pl.DataFrame) -> None:
        if missing := [name for name in ORDER_COLUMNS if name not in order.columns]:
            raise PlanError(f"plan: order has no column {', '.join(missing)}")
        order = order.select(pl.col(name).cast(kind) for name, kind in ORDER_COLUMNS.items()).sort("launch")
        ids = order["launch"]
        if order.drop("ctas").null_count().sum_horizontal()[0] or ids.n_unique() != self.population:
            raise PlanError(f"plan: order does not have each of the {self.population} launches once")
        if not self.launches["launch"].is_in(ids.implode()).all():
            raise PlanError("plan: a launch is not in order")
        if not order["stratum"].is_in(self.strata["stratum"].implode()).all():
            raise PlanError("plan: a launch in order belongs to a stratum that does not exist")
        waits = order.select("launch", "after").explode("after").drop_nulls()
        if not (waits["after"].is_in(ids.implode()) & (waits["after"] < waits["launch"])).all():
            raise PlanError("plan: a launch waits for one that is not before it in order")
        object.__setattr__(self, "order", order)

    def __len__(self) -> int:
        return len(self.launches)

    @property
    def sampled_ns(self) -> float:
        """Profiled time of the chosen launches, each once."""
        return float(self.launches["time_ns"].sum())

    @property
    def estimated_ns(self) -> float:
        """The plan's estimate of the profiled total."""
        return float((self.launches["weight"] * self.launches["time_ns"]).sum())

    @property
    def profile_error(self) -> Amount:
        """|estimated - true| / true of the profiled total, which the profile determines."""
        if not self.population_ns:
            return 0.0
        return abs(self.estimated_ns - self.population_ns) / self.population_ns

    @property
    def speedup(self) -> _Ratio:
        """Population time divided by the time of all draws, as in the papers; null for infinity."""
        drawn = float((self.launches["draws"] * self.launches["time_ns"]).sum())
        return self.population_ns / drawn if drawn else math.inf

    @property
    def distinct_speedup(self) -> _Ratio:
        """Population time divided by the time of the distinct launches: one drawn twice is simulated once."""
        return self.population_ns / self.sampled_ns if self.sampled_ns else math.inf

    @property
    def makespan_speedup(self) -> _Ratio:
        """Population time divided by the longest chosen launch: the limit if all run in parallel."""
        longest = float(self.launches["time_ns"].max() or 0.0)  # type: ignore[arg-type]
        return self.population_ns / longest if longest else math.inf

    def estimate(self, results: Any, metrics: Sequence[str] | None = None, **options: Any) -> Estimate:
        """Totals with confidence intervals from measured or simulated values of the chosen launches.

        See `simt.sampling.estimate.estimate` for the accepted results and the options.
        """
        from simt.sampling.estimate import estimate

        return estimate(self, results, metrics, **options)

    def to_json(self) -> str:
        """The Plan as JSON of schema `simt.plan/1` (simt.plan-1.schema.json).

        The same Plan gives the same text.
        """
        return json.dumps(
            {"schema": SCHEMA} | {name: _plain(getattr(self, name)) for name in _WRITTEN.__struct_fields__},
            indent=1,
            default=_plain,
        )

    @classmethod
    def from_json(cls, text: str, source: str = "plan") -> Plan:
        """Reads the output of `to_json`. Raises PlanError with the name `source` for anything else."""
        try:
            data = msgspec.json.decode(text)
            if not isinstance(data, dict) or data.get("schema") != SCHEMA:
                found = data.get("schema") if isinstance(data, dict) else type(data).__name__
                raise PlanError(f"{source}: schema is {found!r}, expected {SCHEMA!r}")
            found = msgspec.convert(data, _WRITTEN)
            values = {each.name: getattr(found, each.name) for each in fields(cls)}
            values["launches"] = pl.DataFrame(data["launches"], schema=LAUNCH_COLUMNS)
            if data.get("order") is not None:
                values["order"] = pl.DataFrame(data["order"], schema=ORDER_COLUMNS)
            values["strata"] = pl.DataFrame(data["strata"], schema=STRATUM_COLUMNS)
            return cls(**values)
        except msgspec.DecodeError as error:  # of which ValidationError is one
            raise PlanError(f"{source}: not a plan: {error}") from error
        except (ValueError, KeyError, TypeError, RecursionError, pl.exceptions.PolarsError) as error:
            raise PlanError(f"{source}: not a plan: {error!r}") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes `to_json` to a file, which appears whole or not at all."""
        target = Path(path)
        write_text(target, self.to_json() + "\n")
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        require_file(Path(path), "a plan that `simt sample --output` wrote", PlanError)
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"), os.fspath(path))
        except (OSError, UnicodeDecodeError) as error:
            raise PlanError(f"{os.fspath(path)}: cannot be read: {error}") from error

    def __str__(self) -> str:
        from simt.sampling.plan_tables import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from simt.sampling.plan_tables import plan_notebook

        return plan_notebook(self)


_WRITTEN = written(
    Plan,
    optional=["expected", "ctas", "streams", "order"],
    derived={"fitted": ("speedup", "distinct_speedup", "makespan_speedup", "profile_error")},
)


def schema() -> str:
    """The JSON Schema of a Plan's file."""
    return json_schema(_WRITTEN, SCHEMA, "Launches chosen from a profile by simt")


def _plain(value: Any) -> Any:
    """A value of JSON."""
    if isinstance(value, pl.DataFrame):
        return value.to_dicts()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Method):  # that another one uses
        return {"method": value.label(), **value.get_params(deep=False)}
    if isinstance(value, Mapping):
        return dict(value)
    return value
