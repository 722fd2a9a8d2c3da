"""Profile: a table of launches with their times and counters, independent of the tool that measured them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from simt.errors import ProfileError
from simt.names import listed

# Column -> type. `launch` and `name` are always there; others may be missing if a tool lacks them.
COLUMNS: dict[str, Any] = {
    "launch": pl.UInt64,  # id, unique, ascending in launch order
    "position": pl.UInt64,  # kernels that the program launched before it, where ids count copies as well
    "name": pl.Enum,  # full demangled name
    "grid_x": pl.UInt32,  # CTAs
    "grid_y": pl.UInt32,
    "grid_z": pl.UInt32,
    "block_x": pl.UInt32,  # threads
    "block_y": pl.UInt32,
    "block_z": pl.UInt32,
    "registers": pl.UInt32,  # per thread
    "shared_bytes": pl.UInt32,  # per CTA, static and dynamic
    "stream": pl.Int64,
    "after": pl.List(pl.UInt64),  # launches of other streams that it waits for; null if not known
    "device": pl.Int32,  # ordinal
    "start_ns": pl.Float64,
    "duration_ns": pl.Float64,
    "annotation": pl.Categorical,  # innermost NVTX range or framework operator around the launch
    "tensors": pl.Categorical,  # shapes of the inputs of that operator, JSON: [[32,64],[64,10],[]]
}
KERNEL, COPY, COMMUNICATION, GRAPH = "kernel", "copy", "communication", "graph"
METADATA = "simt.profile/1"  # key of our own entry in a Parquet file's metadata
_COPY = re.compile(r"memcpy|memset|rocclr", re.IGNORECASE)
# Libraries for communication, and the all-reduce kernels of PyTorch, vLLM and DeepEP.
_COMMUNICATION = re.compile(
    r"nccl|rccl|nvshmem|cross_device_reduce|(?:one|two)_shot_all_reduce|multimem_|deep_ep::", re.IGNORECASE
)


def kind_of(name: str) -> str:
    """Classifies a kernel by its name: `kernel`, `copy` (memory copies and fills) or `communication`
    (collectives).
    """
    if _COMMUNICATION.search(name):
        return COMMUNICATION
    return COPY if _COPY.search(name) else KERNEL


@dataclass(frozen=True)
class LeftOut:
    """GPU work other than kernels to be simulated."""

    kind: str  # COPY, COMMUNICATION, or GRAPH: a CUDA graph timed only as a whole
    launches: int
    duration_ns: float
    share: float  # of the whole profile's time, 0 to 1


@dataclass(frozen=True)
class Profile:
    """Launches in launch order, one row each.

    launches: the columns of COLUMNS; any others are counters under their Nsight Compute names (Float64; null
        if a launch was not measured). Rows may come in any order; they are sorted by `launch`.
    gpu: name of the measured GPU, if the tool gives it.
    source: the file that was read, for messages.
    left_out: work that `kernels()` dropped, and memory copies by copy engines that the reader found.
    warnings: the reader's remarks, one line each.
    expected: whether times are not measured but expected from what the launches execute
        (`simt.profile.executed`).

    Raises ProfileError if a column is missing or has another type, or if ids repeat.
    """

    launches: pl.DataFrame
    gpu: str | None = None
    source: str = "profile"
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()
    expected: bool = False

    def __post_init__(self) -> None:
        frame = self.launches
        for name in ("launch", "name"):
            if name not in frame.columns:
                raise ProfileError(f"{self.source}: no column `{name}`, found {', '.join(frame.columns)}")
        frame = _typed(frame, self.source)
        ids = frame["launch"]
        if not ids.is_sorted():
            frame = frame.sort("launch", maintain_order=True)
            ids = frame["launch"]
        if len(ids) > 1:
            same = ids.to_numpy()
            repeated = np.flatnonzero(same[1:] == same[:-1])
            if len(repeated):
                raise ProfileError(f"{self.source}: launch id {same[repeated[0]]} occurs twice")
        if "duration_ns" in frame.columns:
            valid = pl.col("duration_ns").is_finite() & (pl.col("duration_ns") >= 0)
            bad = frame.filter(~valid.fill_null(False))
            if len(bad):
                raise ProfileError(
                    f"{self.source}: launch {bad['launch'][0]} ({bad['name'][0]}) took "
                    f"{bad['duration_ns'][0]} ns, "
                    f"expected a number of 0 or more"
                )
        object.__setattr__(self, "launches", frame)

    def __len__(self) -> int:
        return len(self.launches)

    @property
    def counters(self) -> list[str]:
        """Names of the measured counters."""
        return [name for name in self.launches.columns if name not in COLUMNS]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The distinct kernel names in lexical order; `name_codes` indexes them."""
        return tuple(self.launches["name"].dtype.categories)  # type: ignore[attr-defined]

    @cached_property
    def name_codes(self) -> npt.NDArray[np.uint32]:
        """For each launch, the index of its name in `names`."""
        codes: npt.NDArray[np.uint32] = self.launches["name"].to_physical().cast(pl.UInt32).to_numpy()
        return codes

    @property
    def total_ns(self) -> float:
        """Sum of the launches' durations in ns."""
        return float(self.column("duration_ns").sum())

    def has(self, column: str) -> bool:
        return column in self.launches.columns

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """One numeric column as float64, NaN if unknown. Raises ProfileError if it is missing."""
        if not self.has(name):
            raise ProfileError(
                f"{self.source}: no `{name}`, which this method needs; the profile has "
                f"{listed([c for c in self.launches.columns if c not in ('launch', 'name')])}"
            )
        values = self.launches[name].cast(pl.Float64).fill_null(float("nan"))
        array: npt.NDArray[np.float64] = values.to_numpy()
        return array

    def product(self, *names: str) -> npt.NDArray[np.float64]:
        """Product of columns, such as the threads of a CTA."""
        result = np.ones(len(self))
        for name in names:
            result *= self.column(name)
        return result

    def take(self, rows: pl.Series | npt.NDArray[Any] | pl.Expr) -> Profile:
        """The launches that a boolean mask or expression selects."""
        mask = rows if isinstance(rows, (pl.Expr, pl.Series)) else pl.Series(np.asarray(rows))
        return replace(self, launches=self.launches.filter(mask))

    def kernels(self) -> Profile:
        """The profile without copies and communication, which kernel simulation does not cover; `left_out`
        sums them up.
        """
        kinds = {name: kind_of(name) for name in self.names}
        if all(kind == KERNEL for kind in kinds.values()):
            return self
        dropped = {entry.kind: (entry.launches, entry.duration_ns) for entry in self.left_out}
        for kind in (COPY, COMMUNICATION):
            names = [name for name, of in kinds.items() if of == kind]
            part = self.launches.filter(pl.col("name").is_in(names))
            if len(part):
                ns = float(part["duration_ns"].sum()) if self.has("duration_ns") else float("nan")
                number, before = dropped.get(kind, (0, 0.0))
                dropped[kind] = number + len(part), before + ns
        kept = [name for name, of in kinds.items() if of == KERNEL]
        launches = self.launches.filter(pl.col("name").is_in(kept))
        kept_ns = float(launches["duration_ns"].sum()) if self.has("duration_ns") else float("nan")
        total = kept_ns + sum(ns for _, ns in dropped.values())
        left_out = (LeftOut(kind, n, ns, ns / total if total else 0.0) for kind, (n, ns) in dropped.items())
        return replace(self, launches=launches, left_out=tuple(left_out))

    def with_columns(self, columns: Mapping[str, Sequence[float] | npt.NDArray[Any]]) -> Profile:
        """The profile with additional or replaced counters; each holds one value per launch."""
        return replace(
            self,
            launches=self.launches.with_columns(
                pl.Series(name, np.asarray(values)) for name, values in columns.items()
            ),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a Parquet file, whole or not at all, that `read_profile` reads back as the same Profile.

        Raises ProfileError if it cannot be written.
        """
        from simt.files import replacing

        target = Path(path)
        about = {
            "gpu": self.gpu,
            "source": self.source,
            "left_out": [asdict(entry) for entry in self.left_out],
            "warnings": list(self.warnings),
            "expected": self.expected,
        }
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as temporary:
                self.launches.write_parquet(temporary, metadata={METADATA: json.dumps(about)})
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ProfileError(f"{target}: cannot be written: {error}") from error
        return target

    def _repr_html_(self) -> str:
        from simt.profile.kernel_table import profile_notebook

        return profile_notebook(self)


def metadata_of(path: Path) -> dict[str, Any] | None:
    """The metadata that `Profile.save` wrote beside the table; None for other Parquet files."""
    text = pl.read_parquet_metadata(path).get(METADATA)
    if text is None:
        return None
    try:
        about = json.loads(text)
        gpu, warnings = about["gpu"], [str(line) for line in about["warnings"]]
        left_out = tuple(
            LeftOut(str(x["kind"]), int(x["launches"]), float(x["duration_ns"]), float(x["share"]))
            for x in about["left_out"]
        )
        return {
            "gpu": None if gpu is None else str(gpu),
            "warnings": tuple(warnings),
            "left_out": left_out,
            "expected": bool(about.get("expected", False)),
        }
    except (ValueError, TypeError, KeyError) as error:
        raise ProfileError(f"{path}: the metadata `{METADATA}` is damaged: {error!r}") from error


def _typed(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Columns with the types of COLUMNS, counters as Float64, names as an Enum of those that occur."""
    casts: list[pl.Expr] = []
    for name, dtype in frame.schema.items():
        wanted = COLUMNS.get(name, pl.Float64)
        if wanted is pl.Enum or dtype == wanted:
            continue
        casts.append(pl.col(name).cast(wanted))
    try:
        frame = frame.with_columns(casts)
        # Only on the few distinct names: ten million names as text would take gigabytes.
        names = frame["name"].unique().cast(pl.String).sort()
        if names.null_count():
            raise ProfileError(f"{source}: a launch has no name")
        dtype = frame["name"].dtype
        if not (isinstance(dtype, pl.Enum) and dtype.categories.to_list() == names.to_list()):
            frame = frame.with_columns(pl.col("name").cast(pl.Enum(names)))
        return frame
    except pl.exceptions.PolarsError as error:
        raise ProfileError(f"{source}: {error}") from error
