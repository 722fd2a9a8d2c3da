"""The folder of a study's results: Parquet parts, one row a point, which appear whole or not at all.

points/part-000012.parquet            rows as they came
points/part-000000-000099.parquet     the rows of the parts 0 to 99, merged
former/                               rows of points that the study no longer has
pieces/DIGEST/000003.json             finished pieces of a point that is spread over workers
results/DIGEST.json                   Results of points, if they are kept
lock                                  held by the run that writes here
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl

from simt.cache import cache_directory, evict, used
from simt.errors import StudyError
from simt.files import replacing, require_folder
from simt.result.counters import COUNTERS
from simt.study.inputs import identity
from simt.study.simulation import DONE, PointOutcome
from simt.study.space import Axis, StudyPoint
from simt.version import __version__

# What is known of a point without running it, besides the columns that identify it.
_PROVENANCE: dict[str, Any] = {
    "specification": pl.String,  # the GPU's values, as JSON
    "spec_hash": pl.String,
    "input_hash": pl.String,  # of the contents of program or trace
    "version": pl.String,
    "engine": pl.String,  # SHA-256 of the installed simt
}
_MEASURED: dict[str, Any] = {
    "launches": pl.Int64,
    "cycles": pl.Float64,  # an estimate, with a plan
    "error_bound": pl.Float64,  # relative half width of the interval of cycles, with a plan
    "seconds": pl.Float64,
    "joules": pl.Float64,
    "launch_latency": pl.Int64,
    **{counter.name: pl.Float64 for counter in COUNTERS},
}
RUN_COLUMNS: dict[str, Any] = {"wall_seconds": pl.Float64, "host": pl.String, "finished": pl.String}
"""How a point was run, which its outcome does not depend on."""
_OUTCOME: dict[str, Any] = {"status": pl.String, "error": pl.String, **_MEASURED, **RUN_COLUMNS}
_SHARED = {"point": pl.String, **_OUTCOME, **_PROVENANCE}
_MERGED = 100  # parts that become one
_PART = re.compile(r"part-(\d{6,})(?:-(\d{6,}))?\.parquet")


class Store:
    """Rows of points in a folder. `schema` has the columns that identify a point first.

    Raises StudyError where the folder cannot be read or written.
    """

    def __init__(self, folder: Path, axes: Sequence[Axis], share: Path | None = None) -> None:
        self.folder, self._share = folder, share
        own: dict[str, Any] = {"input": pl.String, "gpu": pl.String}
        own |= {axis.name: _type_of([value.shown for value in axis.values]) for axis in axes}
        own |= {"method": pl.String, "seed": pl.Int64}
        self.schema = {**own, **_SHARED}
        self.own = own
        self._statuses: dict[str, str] = {}

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the folder for this process. Raises StudyError if another one does."""
        require_folder(self.folder / "points", StudyError)
        with open(self.folder / "lock", "a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.seek(0)
                raise StudyError(
                    f"{self.folder}: another run writes here ({lock.read().strip() or 'unknown'}); "
                    "wait for it, or give this study another folder with results = ..."
                ) from None
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {platform.node()}")
            lock.flush()
            self._tidy()
            yield

    def status(self, point: StudyPoint) -> str | None:
        """Of a point that has ended, while this process holds the folder; None for others."""
        return self._statuses.get(point.digest)

    def rows(self) -> pl.DataFrame:
        """Every row, of each point once, in no particular order; a success goes before failures."""
        parts = self._parts()
        while True:  # a run may be merging them
            try:
                frame = _together(parts, self.schema)
                break
            except FileNotFoundError as error:
                before, parts = parts, self._parts()
                if parts == before:
                    raise StudyError(f"{error.filename}: cannot be read: {error.strerror}") from None
        return frame.sort(pl.col("status") != DONE, maintain_order=True).unique(
            "point", keep="first", maintain_order=True
        )

    def begin(self, points: Collection[StudyPoint]) -> None:
        """Makes the columns of all parts this study's, and moves rows of points that it lacks to `former`."""
        wanted = {point.digest: point for point in points}
        parts = self._parts()
        frames = {part: _read(part) for part in parts}
        self._statuses = dict(self.rows().select("point", "status").iter_rows())
        same = all(frame.schema == pl.Schema(self.schema) for frame in frames.values())
        rows = _together(parts, {**self.schema}, frames)
        here = rows["point"].is_in(list(wanted))
        labels = rows.select(list(self.own)).rows() == [
            tuple(wanted[digest].columns.values()) if digest in wanted else row
            for digest, row in zip(rows["point"], rows.select(list(self.own)).rows(), strict=True)
        ]
        if same and here.all() and labels:
            return
        gone = rows.filter(~here)
        if len(gone):
            self._write(self.folder / "former" / f"{_name_of(gone)}.parquet", gone.select(list(_SHARED)))
        kept = rows.filter(here)
        self._statuses = dict(kept.select("point", "status").iter_rows())
        numbers = [self._numbers(part) for part in parts]
        target = self._part(min(n for n, _ in numbers), max(n for _, n in numbers))
        self._write(target, self._labelled(kept, wanted))
        for part in parts:
            if part != target:
                part.unlink()

    def add(self, outcomes: Sequence[tuple[StudyPoint, PointOutcome]]) -> None:
        """Writes rows as one part, and merges parts when there are many."""
        self._append(pl.DataFrame([self._row(*each) for each in outcomes], schema=self.schema))
        for point, outcome in outcomes:
            self._statuses[point.digest] = outcome.status
            if outcome.result is not None and point.work.keep:
                _write_bytes(self.folder / "results" / f"{point.digest}.json", outcome.result)
        loose = [part for part in self._parts() if self._numbers(part)[0] == self._numbers(part)[1]]
        if len(loose) >= _MERGED:
            self._merge(loose)

    def find(self, points: Collection[StudyPoint]) -> int:
        """Takes rows of finished points over from `former` and from what is shared. Returns their number."""
        wanted = {point.digest: point for point in points}
        places = [self.folder / "former", *self._shared()]
        files = [file for place in places for file in sorted(place.glob("*.parquet"))]
        frames = []
        for file in files:
            with suppress(OSError, pl.exceptions.PolarsError, StudyError):  # another's file, gone or broken
                rows = (
                    pl.scan_parquet(file)
                    .filter(pl.col("point").is_in(list(wanted)), pl.col("status") == DONE)
                    .collect()
                )
                if len(rows):
                    used(file)
                    frames.append(_cast(rows, _SHARED))
        if not frames:
            return 0
        found = pl.concat(frames).unique("point", keep="first", maintain_order=True)
        self._append(self._labelled(found, wanted))
        self._statuses |= dict.fromkeys(found["point"], DONE)
        return len(found)

    def publish(self) -> None:
        """Shares finished points with other studies. What cannot be shared stays here alone."""
        rows = self.rows().filter(pl.col("status") == DONE).select(list(_SHARED))
        for place in self._shared():
            known: set[str] = set()
            for file in place.glob("*.parquet"):
                with suppress(OSError, pl.exceptions.PolarsError):
                    known.update(pl.scan_parquet(file).select("point").collect()["point"])
            new = rows.filter(~pl.col("point").is_in(list(known)))
            if len(new):
                with suppress(StudyError):
                    self._write(place / f"{_name_of(new)}.parquet", new)
        evict()

    # --- pieces -----------------------------------------------------------------------------------------

    def pieces(self, point: StudyPoint) -> dict[int, bytes]:
        """The finished pieces of a point, by their number."""
        place = self.folder / "pieces" / point.digest
        return {int(file.stem): file.read_bytes() for file in sorted(place.glob("*.json"))}

    def add_piece(self, point: StudyPoint, number: int, result: bytes) -> None:
        _write_bytes(self.folder / "pieces" / point.digest / f"{number:06}.json", result)

    def forget_pieces(self, point: StudyPoint) -> None:
        shutil.rmtree(self.folder / "pieces" / point.digest, ignore_errors=True)

    # --- parts ------------------------------------------------------------------------------------------

    def _row(self, point: StudyPoint, outcome: PointOutcome) -> dict[str, Any]:
        return {
            **point.columns,
            "point": point.digest,
            "status": outcome.status,
            "error": outcome.error,
            **{name: outcome.values.get(name) for name in _MEASURED},
            "wall_seconds": outcome.wall_seconds,
            "host": outcome.host,
            "finished": outcome.finished,
            "specification": point.specification,
            "spec_hash": point.work.spec_hash,
            "input_hash": point.input_hash,
            "version": __version__,
            "engine": identity(),
        }

    def _labelled(self, rows: pl.DataFrame, points: Mapping[str, StudyPoint]) -> pl.DataFrame:
        """Rows of points, with the columns by which this study identifies them."""
        own = [points[digest].columns for digest in rows["point"]]
        labels = pl.DataFrame({key: [row[key] for row in own] for key in self.own}, schema=self.own)
        return pl.concat([labels, _cast(rows, _SHARED)], how="horizontal").select(list(self.schema))

    def _parts(self) -> list[Path]:
        """The parts, without those that a merged one replaces."""
        found = {path: self._numbers(path) for path in (self.folder / "points").glob("part-*.parquet")}
        ranges = set(found.values())

        def merged(low: int, high: int) -> bool:
            return any(a <= low and high <= b and (a, b) != (low, high) for a, b in ranges)

        return sorted((path for path, at in found.items() if not merged(*at)), key=lambda path: found[path])

    def _numbers(self, part: Path) -> tuple[int, int]:
        named = _PART.fullmatch(part.name)
        if named is None:
            raise StudyError(f"{part}: found this among the parts of a study, expected part-NNNNNN.parquet")
        return int(named[1]), int(named[2] or named[1])

    def _part(self, low: int, high: int) -> Path:
        numbers = f"{low:06}" if low == high else f"{low:06}-{high:06}"
        return self.folder / "points" / f"part-{numbers}.parquet"

    def _append(self, rows: pl.DataFrame) -> None:
        following = 1 + max((self._numbers(part)[1] for part in self._parts()), default=-1)
        self._write(self._part(following, following), rows.select(list(self.schema)))

    def _merge(self, parts: Sequence[Path]) -> None:
        target = self._part(self._numbers(parts[0])[0], self._numbers(parts[-1])[1])
        self._write(target, _together(parts, self.schema))
        for part in parts:
            part.unlink()

    def _tidy(self) -> None:
        """Removes what a killed run left: parts that are merged already, and halves of files."""
        alive = set(self._parts())
        for path in (self.folder / "points").iterdir():
            if path not in alive and (path.name.startswith(".") or _PART.fullmatch(path.name)):
                path.unlink()

    def _shared(self) -> list[Path]:
        places = [cache_directory("points")]
        if self._share is not None:
            require_folder(self._share, StudyError)
            places.append(self._share)
        return places

    @staticmethod
    def _write(target: Path, rows: pl.DataFrame) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as temporary:
                rows.write_parquet(temporary, statistics=False)
        except OSError as error:
            raise StudyError(f"{target}: cannot write: {error.strerror}") from error


def _write_bytes(target: Path, data: bytes) -> None:
    from simt.files import write_bytes

    write_bytes(target, data, StudyError)


def _read(part: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(part)
    except FileNotFoundError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise StudyError(f"{part}: no part of a study: {error}") from error


def _together(
    parts: Iterable[Path], schema: Mapping[str, Any], read: Mapping[Path, pl.DataFrame] | None = None
) -> pl.DataFrame:
    frames = [_cast(read[part] if read else _read(part), schema) for part in parts]
    return pl.concat(frames) if frames else pl.DataFrame(schema=dict(schema))


def _cast(frame: pl.DataFrame, schema: Mapping[str, Any]) -> pl.DataFrame:
    """The columns of a schema; those that a frame of an earlier study lacks are null."""
    return frame.select(
        (pl.col(name).cast(kind, strict=False) if name in frame.columns else pl.lit(None, kind).alias(name))
        for name, kind in schema.items()
    )


def _name_of(rows: pl.DataFrame) -> str:
    """A name that depends on which points the rows are of."""
    return hashlib.sha256(json.dumps(sorted(rows["point"])).encode()).hexdigest()[:32]


def _type_of(values: Sequence[Any]) -> Any:
    if all(isinstance(value, bool) for value in values):
        return pl.Boolean
    if any(isinstance(value, (str, bool)) for value in values):
        return pl.String
    return pl.Int64 if all(isinstance(value, int) for value in values) else pl.Float64
