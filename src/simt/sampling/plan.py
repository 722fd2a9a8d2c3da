"""Plan: which launches to simulate, with what weight, and how wrong the total can be."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
import polars as pl

from simt.errors import PlanError
from simt.files import require_file, write_text
from simt.methods import Method

if TYPE_CHECKING:
    from simt.sampling.estimate import Estimate

SCHEMA = "simt.plan/1"
LAUNCH_COLUMNS = {
    "launch": pl.UInt64,  # id in the profile
    "position": pl.UInt64,  # kernels that the program launches before it
    "name": pl.String,
    "stratum": pl.UInt32,
    "draws": pl.UInt32,  # how often it was drawn; above 1 only for sampling with replacement
    "weight": pl.Float64,  # of the launch in the total, all draws together: total = sum weight * value
    "time_ns": pl.Float64,  # profiled duration
}
STRATUM_COLUMNS = {
    "stratum": pl.UInt32,
    "name": pl.String,  # kernel name, or what the stratum's launches have in common
    "launches": pl.UInt64,  # in the population
    "draws": pl.UInt64,
    "time_ns": pl.Float64,  # of all its launches
    "cov": pl.Float64,  # standard deviation / mean of the profiled durations within the stratum
    "why": pl.String,  # why it is a stratum and has so many draws, as text
}


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Small = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
_Amount = _Count | Annotated[float, msgspec.Meta(ge=0, le=1e30)]


class _WrittenLaunch(msgspec.Struct):
    launch: _Count
    name: str
    stratum: _Small
    draws: Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)]
    weight: _Amount
    time_ns: _Amount
    position: _Count | None = None


class _WrittenStratum(msgspec.Struct):
    stratum: _Small
    name: str
    launches: _Count
    draws: _Count
    time_ns: _Amount
    cov: _Amount | None
    why: str


class _Written(msgspec.Struct):
    """What a Plan's JSON must hold: types and ranges."""

    method: str
    parameters: dict[str, Any]
    seed: int | None
    version: str
    gpu: str | None
    source: str
    population: _Count
    population_ns: _Amount
    replacement: bool
    claimed_error: _Amount | None
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    fitted: dict[str, Any]
    warnings: list[str]
    strata: list[_WrittenStratum]
    launches: list[_WrittenLaunch]
    expected: bool = False


@dataclass(frozen=True)
class Plan:
    """The result of a sampler.

    method, parameters, seed, version: sufficient to make the same Plan again from the same profile.
    launches: columns LAUNCH_COLUMNS, one row per distinct launch, in launch order. If `position` is missing,
        it is the launch's id, which counts from 0.
    strata: columns STRATUM_COLUMNS; every launch of the population is in exactly one stratum.
    population: number of launches that the plan stands for.
    population_ns: their time in the profile, ns.
    replacement: whether draws were made with replacement.
    claimed_error: half width of the relative error of the total at `confidence` (0.05 is 5 %); None if the
        method claims none. It applies to the profiled metric on the profiled GPU.
    gpu: the GPU that was profiled.
    expected: whether times are expected from what launches execute, not measured; nothing is then claimed.
    fitted: learned facts (K, error per K, hold-out accuracy, ...), JSON values only.
    """

    method: str
    parameters: Mapping[str, Any]
    seed: int | None
    launches: pl.DataFrame
    strata: pl.DataFrame
    population: int
    population_ns: float
    replacement: bool = False
    claimed_error: float | None = None
    confidence: float = 0.95
    gpu: str | None = None
    source: str = "profile"
    version: str = ""
    fitted: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    expected: bool = False

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
    def profile_error(self) -> float:
        """|estimated - true| / true of the profiled total, which the profile determines."""
        if not self.population_ns:
            return 0.0
        return abs(self.estimated_ns - self.population_ns) / self.population_ns

    @property
    def speedup(self) -> float:
        """Population time divided by the time of all draws, as in the papers."""
        drawn = float((self.launches["draws"] * self.launches["time_ns"]).sum())
        return self.population_ns / drawn if drawn else math.inf

    @property
    def distinct_speedup(self) -> float:
        """Population time divided by the time of the distinct launches: one drawn twice is simulated once."""
        return self.population_ns / self.sampled_ns if self.sampled_ns else math.inf

    @property
    def makespan_speedup(self) -> float:
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
            {
                "schema": SCHEMA,
                "method": self.method,
                "parameters": dict(self.parameters),
                "seed": self.seed,
                "version": self.version,
                "gpu": self.gpu,
                "source": self.source,
                "population": self.population,
                "population_ns": self.population_ns,
                "replacement": self.replacement,
                "claimed_error": self.claimed_error,
                "confidence": self.confidence,
                "speedup": _finite(self.speedup),
                "distinct_speedup": _finite(self.distinct_speedup),
                "makespan_speedup": _finite(self.makespan_speedup),
                "profile_error": self.profile_error,
                "fitted": dict(self.fitted),
                "warnings": list(self.warnings),
                "expected": self.expected,
                "strata": self.strata.to_dicts(),
                "launches": self.launches.to_dicts(),
            },
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
            msgspec.convert(data, _Written)
            return cls(
                method=str(data["method"]),
                parameters=dict(data["parameters"]),
                seed=data["seed"],
                launches=pl.DataFrame(data["launches"], schema=LAUNCH_COLUMNS),
                strata=pl.DataFrame(data["strata"], schema=STRATUM_COLUMNS),
                population=int(data["population"]),
                population_ns=float(data["population_ns"]),
                replacement=bool(data["replacement"]),
                claimed_error=data["claimed_error"],
                confidence=float(data["confidence"]),
                gpu=data["gpu"],
                source=str(data["source"]),
                version=str(data["version"]),
                fitted=dict(data["fitted"]),
                warnings=tuple(data["warnings"]),
                expected=bool(data.get("expected", False)),
            )
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


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Method):  # that another one uses
        return {"method": value.label(), **value.get_params(deep=False)}
    raise TypeError(f"{type(value).__name__} is not a JSON value")
