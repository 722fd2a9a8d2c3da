"""The Workload class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

if TYPE_CHECKING:
    from simt.gpu import GPU

Outputs = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Workload:
    """A program of a given size with known results. Inputs are random with a fixed seed.

    unit: what a size counts.
    sizes: those of the literature, ascending; the first is the default.
    multiple: sizes must be multiples of it.
    small: a size for quick tests.
    on_gpu: runs the program and returns its outputs.
    on_host: computes the same outputs with NumPy.
    tolerance: largest allowed difference from NumPy's outputs, relative to the largest value.
    """

    name: str
    summary: str
    unit: str
    sizes: tuple[int, ...]
    small: int
    multiple: int
    on_gpu: Callable[[GPU, int], Outputs]
    on_host: Callable[[int], Outputs]
    tolerance: float = 1e-5

    def run(self, gpu: GPU, size: int | None = None) -> Outputs:
        """Launches the kernels on a GPU and returns the outputs by name. Raises LaunchError for an invalid
        size.
        """
        return self.on_gpu(gpu, self._checked(size))

    def reference(self, size: int | None = None) -> Outputs:
        """The expected outputs of `run`, computed with NumPy."""
        return self.on_host(self._checked(size))

    def error(self, outputs: Outputs, reference: Outputs) -> float:
        """The largest difference, relative to the largest value of its output."""
        worst = 0.0
        for name, expected in reference.items():
            difference = np.abs(outputs[name].astype(np.float64) - expected).max()
            worst = max(worst, float(difference / max(np.abs(expected.astype(np.float64)).max(), 1e-30)))
        return worst

    def _checked(self, size: int | None) -> int:
        if size is None:
            return self.sizes[0]
        if size < 1 or size % self.multiple:
            raise LaunchError(
                f"workload {self.name}: {size} {self.unit}, expected a positive multiple of {self.multiple}"
            )
        return size


def with_midpoints(*sizes: int) -> tuple[int, ...]:
    """The sizes, and the mean of each pair of neighbours."""
    between = [(a + b) // 2 for a, b in pairwise(sizes)]
    return tuple(sorted([*sizes, *between]))
