"""Convolution as sums of matrix products that atomics add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .algorithm import DIRECTIONS, ceil_divide
from .gemm import COLUMNS, DEPTH, THREADS, tile_rows
from .implicit_gemm import ImplicitGemm

if TYPE_CHECKING:
    from simt.gpu import DeviceArray


class AtomicGemm(ImplicitGemm):
    """As the implicit product, but every sum is split over blocks, which add their parts by atomics. cuDNN's
    algorithm 0 of both backward directions, as its documentation describes it.
    """

    name = "atomic_gemm"
    summary = "an implicit matrix product, parts of whose sums atomics add"
    source = "atomic_gemm.cu"

    def _forward(self, x: DeviceArray, w: DeviceArray) -> DeviceArray:
        z = self._problem
        return self._summed("forward", x, w, z.y_shape, (z.k, z.n * z.p * z.q, z.c * z.r * z.s))

    def _backward_data(self, dy: DeviceArray, w: DeviceArray) -> DeviceArray:
        z = self._problem
        return self._summed("backward_data", dy, w, z.x_shape, (z.c, z.n * z.h * z.w, z.k * z.r * z.s))

    def _backward_filter(self, x: DeviceArray, dy: DeviceArray) -> DeviceArray:
        z = self._problem
        return self._summed("backward_filter", x, dy, z.w_shape, (z.k, z.c * z.r * z.s, z.n * z.p * z.q))

    def _summed(
        self,
        direction: str,
        first: DeviceArray,
        second: DeviceArray,
        shape: tuple[int, ...],
        size: tuple[int, int, int],
    ) -> DeviceArray:
        """size: rows, columns and depth of the product."""
        rows, columns, depth = size
        grid = (ceil_divide(columns, COLUMNS), ceil_divide(rows, tile_rows(rows)))
        splits, length = self._splits(depth, grid[0] * grid[1], 4 * DEPTH)
        found = self._empty(shape)
        found.fill(0)
        kernel = self._module[self._named(direction)]
        kernel[(*grid, splits), THREADS](first, second, found, self._shape, length)
        return found

    def _instances(self) -> list[str]:
        return [self._named(direction) for direction in DIRECTIONS]

    def _named(self, direction: str) -> str:
        return super()._named(direction).replace("implicit", "atomic")
