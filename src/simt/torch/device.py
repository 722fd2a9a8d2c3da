"""The memory of a simulated GPU as tensors."""

from __future__ import annotations

import mmap
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from simt.gpu import GPU

_running = threading.local()
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Types of numbers by size: bits compare equal as such, NaNs included."""


class HostOperatorWarning(UserWarning):
    """An operator has no kernel for the GPU: it was executed on the host, and is not timed."""


class TorchDevice:
    """A GPU for compiled models. Its memory is mapped here, so that CPU tensors can lie in it."""

    def __init__(self, gpu: GPU) -> None:
        self.gpu = gpu
        self.host_operators: dict[str, int] = {}
        """Operators that were executed on the host, with how often."""
        self.annotation = ""
        """The operator that the next kernels belong to."""
        self.modules: dict[Any, Any] = {}
        """Compiled kernels that are loaded, by kernel."""
        native = gpu.memory.native
        self._base, self._capacity = int(native.base), int(native.capacity)
        self._bytes = mmap.mmap(native.file, self._capacity)
        self._first = np.frombuffer(self._bytes, np.uint8).ctypes.data
        self._copies: dict[tuple[int, int], torch.Tensor] = {}

    def empty(self, nbytes: int) -> torch.Tensor:
        """A tensor of bytes in the GPU's memory, which is freed with it. Raises LaunchError if there is no
        room.
        """
        address = self.gpu.memory.allocate(nbytes, "tensor", owned=True)
        block = np.ndarray((max(1, nbytes),), np.uint8, self._bytes, address - self._base)
        weakref.finalize(block, self.gpu.exclusive.drop, address).atexit = False
        return torch.from_numpy(block)[:nbytes]

    def empty_strided(self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor in the GPU's memory. strides: in elements."""
        last = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        nbytes = (last + 1) * dtype.itemsize if all(shape) else 0
        return self.empty(nbytes).view(dtype).as_strided(tuple(shape), tuple(strides))

    def address(self, tensor: torch.Tensor) -> int:
        """The address of the first element of a tensor in the GPU's memory."""
        offset = self._place(tensor)
        assert offset is not None
        return self._base + offset

    def _place(self, tensor: torch.Tensor) -> int | None:
        """Where a tensor begins in the GPU's memory; None if it is not there."""
        offset = tensor.data_ptr() - self._first
        return offset if 0 <= offset < self._capacity else None

    def copied(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, if it is in the GPU's memory; otherwise a copy there, in the same place as long as
        the tensor exists.
        """
        if self._place(tensor) is not None:
            return tensor
        plain = tensor.detach()
        if not plain.numel():
            return self.empty_strided(plain.shape, plain.stride(), plain.dtype)
        span = 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True))
        key = plain.data_ptr(), span * plain.dtype.itemsize
        place = self._copies.get(key)
        if place is None:
            place = self._copies[key] = self.empty(key[1])
            weakref.finalize(tensor, self._copies.pop, key, None).atexit = False
        copy = place.view(plain.dtype).as_strided(plain.shape, plain.stride())
        if not _same_bits(copy, plain):  # a copy may be saved for a gradient, which notices that it changes
            copy.copy_(plain)
        self.gpu.copied_from_host(self.address(copy), key[1])
        return copy

    def ran_on_host(self, operator: str) -> None:
        """Notes that an operator is executed on the host."""
        if operator not in self.host_operators:
            warnings.warn(
                f"{operator} has no kernel for the GPU: it runs on the host, and is not timed",
                HostOperatorWarning,
                stacklevel=2,
            )
        self.host_operators[operator] = self.host_operators.get(operator, 0) + 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within the block, the generated code that this thread calls runs on this device."""
        before, _running.device = getattr(_running, "device", None), self
        try:
            yield
        finally:
            _running.device = before


def _same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors of one type and layout have the same contents."""
    word = _WORDS.get(first.dtype.itemsize)
    return word is not None and torch.equal(first.view(word), second.view(word))


def running() -> TorchDevice:
    """The device on which this thread runs generated code."""
    found: TorchDevice = _running.device
    return found
