"""Arrays in the memory of a simulated GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

if TYPE_CHECKING:
    from .gpu import GPU


class DeviceArray:
    """An array in device memory, contiguous in C order. Made by `GPU.array`, `GPU.empty` and `GPU.zeros`.

    shape, dtype: as of a NumPy array. address: device address of the first element.
    """

    def __init__(
        self, gpu: GPU, address: int, shape: tuple[int, ...], dtype: npt.DTypeLike, owner: bool = True
    ) -> None:
        self.gpu = gpu
        self.address = address
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._owner = owner

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def data_ptr(self) -> int:
        """The device address, as Triton and PyTorch ask for it."""
        return self.address

    def numpy(self) -> npt.NDArray[Any]:
        """A copy in host memory. Waits for all launches."""
        self.gpu.synchronize()
        raw = self.gpu.memory.read(self.address, self.nbytes) if self.nbytes else b""
        array: npt.NDArray[Any] = np.frombuffer(raw, self.dtype).reshape(self.shape).copy()
        return array

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def set(self, values: npt.ArrayLike) -> DeviceArray:
        """Copies values into it, converted to its type and broadcast to its shape. Waits for all launches.

        Raises LaunchError where the shapes do not fit.
        """
        try:
            source = np.broadcast_to(np.asarray(values).astype(self.dtype), self.shape)
        except ValueError as error:
            raise LaunchError(f"an array of shape {self.shape} cannot be set: {error}") from error
        self.gpu.synchronize()
        if self.nbytes:
            self.gpu.write(self.address, np.ascontiguousarray(source))
        return self

    def view(self, dtype: npt.DTypeLike, shape: Sequence[int] | None = None) -> DeviceArray:
        """The same memory as other elements. It lives as long as this array."""
        to = np.dtype(dtype)
        elements = self.nbytes // to.itemsize
        view = DeviceArray(self.gpu, self.address, tuple(shape or (elements,)), to, owner=False)
        if view.nbytes > self.nbytes:
            raise LaunchError(f"a view of {view.nbytes} bytes of an array of {self.nbytes}")
        view._base = self  # type: ignore[attr-defined]
        return view

    def free(self) -> None:
        """Gives the memory back; using the array afterwards is an illegal address."""
        if self._owner:
            self._owner = False
            self.gpu.free(self.address)

    def discard(self) -> None:
        """Gives the memory back without waiting for launches."""
        if self._owner:
            self._owner = False
            self.gpu.memory.free(self.address)

    def __del__(self) -> None:
        if getattr(self, "_owner", False):
            self.discard()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}, shape {self.shape}, at {self.address:#x})"
