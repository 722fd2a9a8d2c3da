"""Direct convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .algorithm import DIRECTIONS, Algorithm, ceil_divide
from .problem import Convolution

if TYPE_CHECKING:
    from simt.gpu import DeviceArray

WIDTH, HEIGHT, CHANNELS = 16, 8, 8  # as in direct.cu
MOST_TAPS = 49  # a thread keeps a sum for each in backward filter


class Direct(Algorithm):
    """The definition, a thread for each pixel, which keeps the sums of 8 output channels."""

    name = "direct"
    summary = "the definition, with tiles in shared memory"
    supports = f"filters of up to {MOST_TAPS} elements, any padding and stride"
    source = "direct.cu"

    @classmethod
    def can_compute(cls, problem: Convolution) -> bool:
        return problem.r * problem.s <= MOST_TAPS

    def _forward(self, x: DeviceArray, w: DeviceArray) -> DeviceArray:
        z, y = self._problem, self._empty(self._problem.y_shape)
        grid = (_tiles(z.p, z.q), ceil_divide(z.k, CHANNELS), z.n)
        self._module[self._named("forward")][grid, (WIDTH, HEIGHT)](x, w, y, self._shape)
        return y

    def _backward_data(self, dy: DeviceArray, w: DeviceArray) -> DeviceArray:
        z, dx = self._problem, self._empty(self._problem.x_shape)
        grid = (_tiles(z.h, z.w), ceil_divide(z.c, CHANNELS), z.n)
        self._module[self._named("backward_data")][grid, (WIDTH, HEIGHT)](dy, w, dx, self._shape)
        return dx

    def _backward_filter(self, x: DeviceArray, dy: DeviceArray) -> DeviceArray:
        z, dw = self._problem, self._empty(self._problem.w_shape)
        taps = z.r * z.s
        filters = 4 if taps <= 9 else 2 if taps <= 25 else 1  # filters_of_a_block in direct.cu
        grid = (z.c, ceil_divide(z.k, filters))
        self._module[self._named("backward_filter")][grid, (WIDTH, HEIGHT)](x, dy, dw, self._shape)
        return dw

    def _instances(self) -> list[str]:
        return [self._named(direction) for direction in DIRECTIONS]

    def _named(self, direction: str) -> str:
        z = self._problem
        return f"direct_{direction}<{z.r}, {z.s}, {z.stride}>"


def _tiles(height: int, width: int) -> int:
    return ceil_divide(height, HEIGHT) * ceil_divide(width, WIDTH)
