"""Convolution as a matrix product with an unfolded image that is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .algorithm import Algorithm, ceil_divide
from .gemm import COLUMNS, DEPTH, THREADS, tile_rows
from .problem import Convolution

if TYPE_CHECKING:
    from simt.gpu import DeviceArray


class ExplicitGemm(Algorithm):
    """One kernel unfolds the image (im2col), another multiplies; backward data multiplies and folds. cuDNN's
    GEMM, and Caffe's convolution.
    """

    name = "explicit_gemm"
    summary = "a matrix product with a stored unfolded image"
    supports = "any filters, padding and stride, up to 65,535 elements of a filter over all channels"
    source = "explicit_gemm.cu"

    @classmethod
    def can_compute(cls, problem: Convolution) -> bool:
        return problem.c * problem.r * problem.s <= 65_535

    def _forward(self, x: DeviceArray, w: DeviceArray) -> DeviceArray:
        z, y = self._problem, self._empty(self._problem.y_shape)
        grid = (ceil_divide(self._pixels, COLUMNS), ceil_divide(z.k, tile_rows(z.k)))
        self._module[self._named("forward")][grid, THREADS](self._unfolded(x), w, y, self._shape)
        return y

    def _backward_data(self, dy: DeviceArray, w: DeviceArray) -> DeviceArray:
        dx, matrix = self._empty(self._problem.x_shape), self._empty((self._taps, self._pixels))
        grid = (ceil_divide(self._pixels, COLUMNS), ceil_divide(self._taps, tile_rows(self._taps)))
        self._module[self._named("backward_data")][grid, THREADS](dy, w, matrix, self._shape)
        self._module[self._moved("fold")][ceil_divide(dx.size, 256), 256](matrix, dx, self._shape)
        return dx

    def _backward_filter(self, x: DeviceArray, dy: DeviceArray) -> DeviceArray:
        z = self._problem
        grid = (ceil_divide(self._taps, COLUMNS), ceil_divide(z.k, tile_rows(z.k)))
        splits, length = self._splits(self._pixels, grid[0] * grid[1], 4 * DEPTH)
        partial = self._empty((splits, *z.w_shape))
        kernel = self._module[self._named("backward_filter")]
        kernel[(*grid, splits), THREADS](self._unfolded(x), dy, partial, self._shape, length)
        return self._added(partial)

    def _unfolded(self, x: DeviceArray) -> DeviceArray:
        matrix = self._empty((self._taps, self._pixels))
        grid = (ceil_divide(self._pixels, 256), self._taps)
        self._module[self._moved("unfold")][grid, 256](x, matrix, self._shape)
        return matrix

    @property
    def _taps(self) -> int:
        return self._problem.c * self._problem.r * self._problem.s

    @property
    def _pixels(self) -> int:
        return self._problem.n * self._problem.p * self._problem.q

    def _instances(self) -> list[str]:
        products = [self._named(direction) for direction in ("forward", "backward_data", "backward_filter")]
        return [*products, self._moved("unfold"), self._moved("fold")]

    def _named(self, direction: str) -> str:
        z = self._problem
        rows = tile_rows(self._taps if direction == "backward_data" else z.k)
        return f"explicit_gemm_{direction}<{z.r}, {z.s}, {rows}>"

    def _moved(self, how: str) -> str:
        z = self._problem
        return f"explicit_gemm_{how}<{z.r}, {z.s}, {z.stride}>"
