"""A GPU with the memory of others, which its kernels reach over the link to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from simt import _engine
from simt.errors import LaunchError
from simt.gpu import GPU
from simt.gpu.array import DeviceArray

_FIRST_ADDRESS, _ADDRESSES = 16 << 32, 1 << 40
"""Start of the GPU's memory, and distance to that of the others."""


class LinkedGpu(GPU):
    """A GPU beside others. Only what its own kernels do takes time: the others, which do the same meanwhile,
    do not hold them up."""

    def __init__(self, spec: Any, *, memory: int, **options: Any) -> None:
        self._space = _engine.functional.AddressSpace(_FIRST_ADDRESS, _ADDRESSES, 2)
        super().__init__(spec, memory=memory, **options)
        self._session.join(self.memory.native)
        self.others = _engine.functional.DeviceMemory(memory, self._space, 1)

    def empty_on_others(self, shape: tuple[int, ...], dtype: npt.DTypeLike, name: str = "") -> DeviceArray:
        """An array of zeros in the memory of the others, `others`; it lives as long as they do. Raises
        LaunchError if they have no room."""
        nbytes = max(1, math.prod(shape) * np.dtype(dtype).itemsize)
        address = self.others.allocate(nbytes, name)
        if not address:
            left = self.others.capacity - self.others.used
            raise LaunchError(f"{name or 'an array'}: {nbytes:,} bytes, but other GPUs have {left:,} left")
        self.others.open(address, 1)
        return DeviceArray(self, address, shape, dtype, self.others)

    def _device_memory(self, capacity: int) -> _engine.functional.DeviceMemory:
        return _engine.functional.DeviceMemory(capacity, self._space, 0, self.exact_bounds)
