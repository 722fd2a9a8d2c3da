"""Winograd convolution in several kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .algorithm import Algorithm, ceil_divide, ints
from .gemm import COLUMNS, tile_rows
from .gemm import THREADS as GEMM_THREADS
from .problem import Convolution

if TYPE_CHECKING:
    from simt.gpu import DeviceArray

SIDE = 6  # of a tile
POINTS = SIDE * SIDE
THREADS = 128


class WinogradNonfused(Algorithm):
    """Transforms to 36 points, a matrix product at each, and inverse transforms. 4 x 4 outputs of 3 x 3
    filters take 36 multiplications instead of 144.
    """

    name = "winograd_nonfused"
    summary = "Winograd F(4x4, 3x3), or F(2x2, 5x5), in several kernels"
    supports = "square filters of 2 x 2 to 5 x 5 with stride 1"
    source = "winograd_nonfused.cu"

    @classmethod
    def can_compute(cls, problem: Convolution) -> bool:
        return problem.r == problem.s and 2 <= problem.r <= 5 and problem.stride == 1

    def _forward(self, x: DeviceArray, w: DeviceArray) -> DeviceArray:
        z = self._problem
        u = self._filters(w, z.k, z.c, (z.c, 1), turned=False)
        return self._convolve(x, u, (z.p, z.q), (z.pad_h, z.pad_w))

    def _backward_data(self, dy: DeviceArray, w: DeviceArray) -> DeviceArray:
        z = self._problem
        u = self._filters(w, z.c, z.k, (1, z.c), turned=True)
        return self._convolve(dy, u, (z.h, z.w), (z.r - 1 - z.pad_h, z.s - 1 - z.pad_w))

    def _backward_filter(self, x: DeviceArray, dy: DeviceArray) -> DeviceArray:
        z = self._problem
        down, across = self._tiles((z.p, z.q))
        tiles = z.n * down * across
        v = self._data(x, (z.p, z.q), (z.pad_h, z.pad_w))
        u = self._empty((POINTS, z.k, tiles))
        gradients = self._module[f"winograd_gradients<{self._step}>"]
        tiling = ints(z.n, z.k, z.p, z.q, down, across, self._step, 0, 0)
        gradients[ceil_divide(z.k * tiles, THREADS), THREADS](dy, u, tiling)
        m = self._multiply("winograd_multiply_transposed", u, v, z.k, z.c, tiles)
        dw = self._empty(z.w_shape)
        outputs = self._module[f"winograd_filter_gradients<{z.r}>"]
        outputs[ceil_divide(z.k * z.c, THREADS), THREADS](m, dw, z.k * z.c)
        return dw

    def _instances(self) -> list[str]:
        z, r, step = self._problem, self._problem.r, self._step
        return [
            f"winograd_filters<{r}>",
            f"winograd_filter_gradients<{r}>",
            f"winograd_gradients<{step}>",
            f"winograd_outputs<{step}>",
            *(f"winograd_multiply<{tile_rows(rows)}>" for rows in sorted({z.k, z.c})),
            f"winograd_multiply_transposed<{tile_rows(z.k)}>",
        ]

    @property
    def _step(self) -> int:
        """The side of a tile's outputs."""
        return SIDE + 1 - self._problem.r

    def _tiles(self, size: tuple[int, int]) -> tuple[int, int]:
        return ceil_divide(size[0], self._step), ceil_divide(size[1], self._step)

    def _filters(
        self, w: DeviceArray, outputs: int, inputs: int, strides: tuple[int, int], turned: bool
    ) -> DeviceArray:
        u = self._empty((POINTS, outputs, inputs))
        kernel = self._module[f"winograd_filters<{self._problem.r}>"]
        grid = ceil_divide(outputs * inputs, THREADS)
        kernel[grid, THREADS](w, u, outputs, inputs, *strides, int(turned))
        return u

    def _data(self, x: DeviceArray, size: tuple[int, int], padding: tuple[int, int]) -> DeviceArray:
        """The transformed tiles of images. size: of the outputs."""
        n, channels, height, width = x.shape
        down, across = self._tiles(size)
        v = self._empty((POINTS, channels, n * down * across))
        tiling = ints(n, channels, height, width, down, across, self._step, -padding[0], -padding[1])
        self._module.winograd_data[ceil_divide(v[0].size, THREADS), THREADS](x, v, tiling)
        return v

    def _convolve(
        self, x: DeviceArray, u: DeviceArray, size: tuple[int, int], padding: tuple[int, int]
    ) -> DeviceArray:
        n, outputs = x.shape[0], u.shape[1]
        v = self._data(x, size, padding)
        m = self._multiply("winograd_multiply", u, v, outputs, v.shape[2], x.shape[1])
        y = self._empty((n, outputs, *size))
        tiling = ints(n, outputs, *size, *self._tiles(size), self._step, 0, 0)
        kernel = self._module[f"winograd_outputs<{self._step}>"]
        kernel[ceil_divide(m[0].size, THREADS), THREADS](m, y, tiling)
        return y

    def _multiply(
        self, kernel: str, u: DeviceArray, v: DeviceArray, rows: int, columns: int, depth: int
    ) -> DeviceArray:
        m = self._empty((POINTS, rows, columns))
        grid = (ceil_divide(columns, COLUMNS), ceil_divide(rows, tile_rows(rows)), POINTS)
        self._module[f"{kernel}<{tile_rows(rows)}>"][grid, GEMM_THREADS](u, v, m, rows, columns, depth)
        return m
