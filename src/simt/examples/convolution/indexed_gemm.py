"""Convolution as a matrix product whose unfolded image is found by a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .algorithm import ceil_divide
from .gemm import COLUMNS, DEPTH, THREADS, tile_rows
from .implicit_gemm import ImplicitGemm

if TYPE_CHECKING:
    from simt.gpu import DeviceArray


class IndexedGemm(ImplicitGemm):
    """As the implicit product, with a table of where each row of the unfolded image is in an image. cuDNN's
    IMPLICIT_PRECOMP_GEMM, and its algorithm 3 of backward filter, which adds parts of sums by atomics.
    """

    name = "indexed_gemm"
    summary = "an implicit matrix product with a table of indices"
    source = "indexed_gemm.cu"

    def _forward(self, x: DeviceArray, w: DeviceArray) -> DeviceArray:
        z, y = self._problem, self._empty(self._problem.y_shape)
        places = self._places(z.c, z.h * z.w, z.w)
        grid = (ceil_divide(z.n * z.p * z.q, COLUMNS), ceil_divide(z.k, tile_rows(z.k)))
        self._module[self._named("forward")][grid, THREADS](x, w, y, self._shape, places)
        return y

    def _backward_data(self, dy: DeviceArray, w: DeviceArray) -> DeviceArray:
        z, dx = self._problem, self._empty(self._problem.x_shape)
        places = self._places(z.k, z.p * z.q, z.q)
        grid = (ceil_divide(z.n * z.h * z.w, COLUMNS), ceil_divide(z.c, tile_rows(z.c)))
        self._module[self._named("backward_data")][grid, THREADS](dy, w, dx, self._shape, places)
        return dx

    def _backward_filter(self, x: DeviceArray, dy: DeviceArray) -> DeviceArray:
        z, dw = self._problem, self._empty(self._problem.w_shape)
        dw.fill(0)
        places = self._places(z.c, z.h * z.w, z.w)
        grid = (ceil_divide(z.c * z.r * z.s, COLUMNS), ceil_divide(z.k, tile_rows(z.k)))
        splits, length = self._splits(z.n * z.p * z.q, grid[0] * grid[1], 4 * DEPTH)
        kernel = self._module[self._named("backward_filter")]
        kernel[(*grid, splits), THREADS](x, dy, dw, self._shape, places, length)
        return dw

    def _places(self, channels: int, pixels: int, width: int) -> DeviceArray:
        """The table, of images with so many channels, pixels and columns."""
        z = self._problem
        rows = channels * z.r * z.s
        places = self._gpu.empty((rows, 3), np.int32)
        self._module[self._table][ceil_divide(rows, 256), 256](places, rows, pixels, width)
        return places

    @property
    def _table(self) -> str:
        return f"indexed_gemm_places<{self._problem.r}, {self._problem.s}>"

    def _instances(self) -> list[str]:
        return [self._table, *super()._instances()]

    def _named(self, direction: str) -> str:
        return super()._named(direction).replace("implicit", "indexed")
