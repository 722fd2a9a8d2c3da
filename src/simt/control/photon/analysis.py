"""What Photon learns about launches before simulating them, independent of the GPU; saved and loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from simt.errors import SimtError

from ..code import BlockTable, Preview
from ..controller import Previewed
from .basic_block_vectors import WarpTypes, block_projection, gpu_vector

_FORMAT = "simt photon analysis 2"


@dataclass(frozen=True, eq=False)
class LaunchAnalysis:
    """Summary of the preview of one launch.

    key: index, name, grid and block of the launch. types: the distinct warps of the sample. length:
        instructions per basic block. vector: the GPU basic-block vector, (types, 16). complete: whether the
        sampled warps ran to their end.
    """

    key: tuple[Any, ...]
    types: WarpTypes
    length: npt.NDArray[np.uint32]
    vector: npt.NDArray[np.float64]
    complete: bool

    @staticmethod
    def of(key: tuple[Any, ...], blocks: BlockTable, preview: Preview) -> LaunchAnalysis:
        types = WarpTypes.of(preview.counts)
        vector = gpu_vector(types, blocks.length, block_projection(blocks.keys))
        return LaunchAnalysis(key, types, blocks.length, vector, preview.complete)

    @property
    def instructions_per_warp(self) -> float:
        """Mean of the sample."""
        return float(self.types.weights @ (self.types.counts @ self.length.astype(np.float64)))

    @property
    def block_shares(self) -> npt.NDArray[np.float64]:
        """Share of each basic block in the sample's instructions."""
        executed = self.types.weights @ self.types.counts.astype(np.float64) * self.length
        total = executed.sum()
        shares: npt.NDArray[np.float64] = executed / total if total else executed
        return shares

    def unevenness(self, cycles: npt.NDArray[np.float64], warps_per_cta: int) -> float:
        """With these cycles per block: the time of a CTA's longest warp over that of its mean warp, on
        average."""
        of_warps = (self.types.counts @ cycles)[self.types.of_warp].reshape(-1, warps_per_cta)
        mean = float(of_warps.mean())
        return float(of_warps.max(axis=1).mean()) / mean if mean else 1.0

    def previewed(self, warps_per_cta: int) -> Previewed:
        """Of the sampled CTAs."""
        of_warps = (self.types.counts @ self.length.astype(np.float64))[self.types.of_warp]
        of_ctas = of_warps.reshape(-1, warps_per_cta).sum(axis=1)
        return Previewed(float(of_ctas.mean()), float(of_ctas.max()))

    def to_json(self) -> dict[str, Any]:
        # Most warps execute few of a program's blocks.
        rows = [[[int(b), int(row[b])] for b in np.flatnonzero(row)] for row in self.types.counts]
        return {
            "key": list(self.key),
            "counts": rows,
            "weights": self.types.weights.tolist(),
            "of_warp": self.types.of_warp.tolist(),
            "length": self.length.tolist(),
            "vector": self.vector.tolist(),
            "complete": self.complete,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> LaunchAnalysis:
        length = np.array(value["length"], np.uint32)
        counts = np.zeros((len(value["counts"]), len(length)), np.uint32)
        for row, entries in zip(counts, value["counts"], strict=True):
            for block, count in entries:
                if not 0 <= block < len(length):
                    raise ValueError(f"block {block} of {len(length)}")
                row[block] = count
        weights = np.array(value["weights"], np.float64)
        vector = np.array(value["vector"], np.float64)
        of_warp = np.array(value["of_warp"], np.int64)
        if of_warp.ndim != 1 or not all(of_warp >= 0) or not all(of_warp < len(counts)):
            raise ValueError("of_warp contains numbers that are no warp types")
        if len(weights) != len(counts) or len(counts) == 0 or vector.ndim != 2 or len(vector) != len(counts):
            raise ValueError("expected as many weights and vectors as warp types")
        types = WarpTypes(counts, weights, of_warp)
        return LaunchAnalysis(_key(value["key"]), types, length, vector, bool(value["complete"]))


def save_analyses(path: str | os.PathLike[str], analyses: Iterable[LaunchAnalysis]) -> None:
    """Writes analyses as JSON, atomically. Raises SimtError if the file cannot be written."""
    target = Path(path)
    text = json.dumps({"format": _FORMAT, "launches": [a.to_json() for a in analyses]})
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SimtError(f"{target}: cannot write the analysis: {error.strerror}") from error


def load_analyses(path: str | os.PathLike[str]) -> dict[tuple[Any, ...], LaunchAnalysis]:
    """Reads what `save_analyses` wrote, by key. Raises SimtError."""
    try:
        value = json.loads(Path(path).read_text())
        if not isinstance(value, dict) or value.get("format") != _FORMAT:
            raise SimtError(f"{path}: not a Photon analysis by simt")
        analyses = [LaunchAnalysis.from_json(launch) for launch in value["launches"]]
    except OSError as error:
        raise SimtError(f"{path}: cannot read the analysis: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise SimtError(f"{path}: the analysis is damaged: {error!r}") from error
    return {a.key: a for a in analyses}


def _key(value: list[Any]) -> tuple[Any, ...]:
    index, name, grid, block = value
    return (int(index), str(name), tuple(int(n) for n in grid), tuple(int(n) for n in block))
