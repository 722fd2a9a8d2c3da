"""What all convolution algorithms have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from simt.errors import LaunchError

from .problem import Convolution, Floats

if TYPE_CHECKING:
    from simt.gpu import GPU, DeviceArray

DIRECTIONS = ("forward", "backward_data", "backward_filter")
MOST_ELEMENTS = 2**31 - 1
_FOLDER = Path(__file__).parent


class Algorithm(ABC):
    """An algorithm for one convolution on one GPU. Arrays are of float32: x and dx (n, c, h, w), w and dw
    (k, c, r, s), y and dy (n, k, p, q).

    Raises LaunchError, which names what is supported, for a convolution that the algorithm cannot compute.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    supports: ClassVar[str]
    """The convolutions that it can compute, for messages."""
    source: ClassVar[str]
    """The file of its kernels."""

    def __init__(self, gpu: GPU, problem: Convolution) -> None:
        if not self.can_compute(problem):
            raise LaunchError(f"{self.name}: cannot compute {problem}; it supports {self.supports}")
        self._gpu, self._problem = gpu, problem
        text = (_FOLDER / self.source).read_text(encoding="utf-8")
        self._module = gpu.compile(text, name=self.source, include=[_FOLDER], kernels=self._instances())

    @classmethod
    @abstractmethod
    def can_compute(cls, problem: Convolution) -> bool: ...

    def forward(self, x: DeviceArray | Floats, w: DeviceArray | Floats) -> DeviceArray:
        """y."""
        z = self._problem
        return self._forward(self._given("x", x, z.x_shape), self._given("w", w, z.w_shape))

    def backward_data(self, dy: DeviceArray | Floats, w: DeviceArray | Floats) -> DeviceArray:
        """The gradient of x."""
        z = self._problem
        return self._backward_data(self._given("dy", dy, z.y_shape), self._given("w", w, z.w_shape))

    def backward_filter(self, x: DeviceArray | Floats, dy: DeviceArray | Floats) -> DeviceArray:
        """The gradient of w."""
        z = self._problem
        return self._backward_filter(self._given("x", x, z.x_shape), self._given("dy", dy, z.y_shape))

    def _instances(self) -> Sequence[str]:
        """The instances of its templates for the problem."""
        return ()

    @abstractmethod
    def _forward(self, x: DeviceArray, w: DeviceArray) -> DeviceArray: ...

    @abstractmethod
    def _backward_data(self, dy: DeviceArray, w: DeviceArray) -> DeviceArray: ...

    @abstractmethod
    def _backward_filter(self, x: DeviceArray, dy: DeviceArray) -> DeviceArray: ...

    def _given(self, name: str, array: DeviceArray | Floats, shape: Sequence[int]) -> DeviceArray:
        if tuple(array.shape) != tuple(shape) or array.dtype != np.float32:
            raise LaunchError(
                f"{self.name}: {name} is {array.dtype} of shape {tuple(array.shape)}, expected float32 of "
                f"shape {tuple(shape)}"
            )
        return self._gpu.array(array) if isinstance(array, np.ndarray) else array

    def _empty(self, shape: Sequence[int]) -> DeviceArray:
        if (size := math.prod(shape)) > MOST_ELEMENTS:
            raise LaunchError(
                f"{self.name}: {self._problem} needs an array of {size:,} elements; kernels number at most "
                f"{MOST_ELEMENTS:,}. Compute fewer images at once"
            )
        return self._gpu.empty(shape)

    @property
    def _shape(self) -> bytes:
        """The structure Shape of shape.cuh."""
        z = self._problem
        return ints(z.n, z.c, z.h, z.w, z.k, z.r, z.s, z.p, z.q, z.pad_h, z.pad_w, z.stride)

    def _splits(self, depth: int, blocks: int, least: int) -> tuple[int, int]:
        """Into how many parts to split a sum of `depth` terms that `blocks` blocks compute, and the length of
        one: enough for two blocks per SM, but parts of at least `least` terms.
        """
        wanted = min(ceil_divide(2 * self._gpu.spec.sm.count, blocks), max(1, depth // least))
        length = ceil_divide(depth, wanted)
        return ceil_divide(depth, length), length

    def _added(self, partial: DeviceArray) -> DeviceArray:
        """Sums over the first dimension, by the kernel of splits.cuh."""
        splits, *shape = partial.shape
        if splits == 1:
            return partial.reshape(shape)
        total = self._empty(shape)
        self._module.add_splits[ceil_divide(total.size, 256), 256](partial, total, total.size, splits)
        return total


def ints(*values: int) -> bytes:
    """A structure of ints."""
    return np.array(values, np.int32).tobytes()


def ceil_divide(a: int, b: int) -> int:
    return -(-a // b)
