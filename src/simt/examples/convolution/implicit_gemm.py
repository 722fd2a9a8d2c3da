"""Convolution as a matrix product with an unfolded image that is never stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .algorithm import DIRECTIONS, Algorithm, ceil_divide
from .gemm import COLUMNS, DEPTH, THREADS, tile_rows
from .problem import Convolution

if TYPE_CHECKING:
    from simt.gpu import DeviceArray


class ImplicitGemm(Algorithm):
    """A matrix product in tiles. The sum over pixels of backward filter is split over blocks."""

    name = "implicit_gemm"
    summary = "a matrix product whose unfolded image is never stored"
    supports = "any filters, padding and stride"
    source = "implicit_gemm.cu"

    @classmethod
    def can_compute(cls, problem: Convolution) -> bool:
        return True

    def _forward(self, x: DeviceArray, w: DeviceArray) -> DeviceArray:
        z, y = self._problem, self._empty(self._problem.y_shape)
        grid = (ceil_divide(z.n * z.p * z.q, COLUMNS), ceil_divide(z.k, tile_rows(z.k)))
        self._module[self._named("forward")][grid, THREADS](x, w, y, self._shape)
        return y

    def _backward_data(self, dy: DeviceArray, w: DeviceArray) -> DeviceArray:
        z, dx = self._problem, self._empty(self._problem.x_shape)
        grid = (ceil_divide(z.n * z.h * z.w, COLUMNS), ceil_divide(z.c, tile_rows(z.c)))
        self._module[self._named("backward_data")][grid, THREADS](dy, w, dx, self._shape)
        return dx

    def _backward_filter(self, x: DeviceArray, dy: DeviceArray) -> DeviceArray:
        z = self._problem
        grid = (ceil_divide(z.c * z.r * z.s, COLUMNS), ceil_divide(z.k, tile_rows(z.k)))
        splits, length = self._splits(z.n * z.p * z.q, grid[0] * grid[1], 4 * DEPTH)
        partial = self._empty((splits, *z.w_shape))
        kernel = self._module[self._named("backward_filter")]
        kernel[(*grid, splits), THREADS](x, dy, partial, self._shape, length)
        return self._added(partial)

    def _instances(self) -> list[str]:
        return [self._named(direction) for direction in DIRECTIONS]

    def _named(self, direction: str) -> str:
        z = self._problem
        rows = tile_rows(z.c if direction == "backward_data" else z.k)
        return f"implicit_gemm_{direction}<{z.r}, {z.s}, {z.stride}, {rows}>"
