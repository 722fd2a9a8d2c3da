"""What of PyTorch 2.13 and Triton 3.9 is replaced for simulated GPUs, all of it, and why.

| replaced | because |
|---|---|
| c10's device guard of CUDA | a build for the CPU has none: switching devices does nothing here |
| `torch._C._accelerator_*` | they ask C++ for an accelerator; the simulated one is not known there |
| `triton.testing.do_bench`, `do_bench_cudagraph` | they repeat for 100 ms, which takes hours to simulate |
| `torch._C._dynamo.guards._empty_strided_cuda` | it is C++ that a build for the CPU has not |
| `torch._subclasses.fake_tensor.init_gpu_context` | it makes a tensor on the GPU while one is traced |

What `torch._C` lacks is added by `cuda_build`; operators, Triton's driver and locations of `torch.load` have
interfaces of their own.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch
import torch._subclasses.fake_tensor
import triton.testing

from . import gpus
from .eager import empty_strided
from .triton_driver import simulated_bench

VERSIONS = {"torch": "2.13", "triton": "3.9"}
_CUDA, _META = 1, 14
"""PyTorch's numbers of device types (c10/core/DeviceType.h)."""


def _device(index: int) -> int:
    """A `c10::Device` as it is passed in a register: its type, and its index above."""
    return _CUDA | (index & 0xFF) << 8


def _exchange_device(this: int, device: int) -> int:
    before = gpus.current()
    gpus.set_current(_signed(device >> 8))
    return _device(before)


def _signed(byte: int) -> int:
    return max(0, ((byte & 0xFF) ^ 0x80) - 0x80)


_GUARD: dict[int, Any] = {
    0: ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)(lambda this: _CUDA),
    1: ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_void_p, ctypes.c_uint16)(_exchange_device),
    2: ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_void_p)(lambda this: _device(gpus.current())),
    3: ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint16)(
        lambda this, device: gpus.set_current(_signed(device >> 8))
    ),
    4: ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint16)(
        lambda this, device: gpus.set_current(_signed(device >> 8))
    ),
    15: ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)(lambda this: gpus.count()),
}
"""Virtual functions of `c10::impl::DeviceGuardImplInterface` of PyTorch 2.13, by their place: `type`,
`exchangeDevice`, `getDevice`, `setDevice`, `uncheckedSetDevice`, `deviceCount`."""
_FUNCTIONS = 26
"""Of the interface, destructors included."""
_kept: list[Any] = []


def _install_guard() -> None:
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    # The guard of "meta" tensors does nothing; ours is that one with the functions above.
    object_ = ctypes.cast(guards[_META], ctypes.POINTER(ctypes.c_void_p))
    table = ctypes.cast(object_[0], ctypes.POINTER(ctypes.c_void_p))
    copied = (ctypes.c_void_p * (_FUNCTIONS + 2))()
    before = ctypes.cast(object_[0] - 16, ctypes.POINTER(ctypes.c_void_p))
    for i in range(2):  # what precedes a table: an offset, and information about the type
        copied[i] = before[i]
    for i in range(_FUNCTIONS):
        own = _GUARD.get(i)
        copied[i + 2] = table[i] if own is None else ctypes.cast(own, ctypes.c_void_p).value
    guard = (ctypes.c_void_p * 2)(ctypes.addressof(copied) + 16)
    _kept.extend((copied, guard))
    guards[_CUDA] = ctypes.addressof(guard)


def _exchange(device: int) -> int:
    before = gpus.current()
    if device >= 0:
        gpus.set_current(device)
    return before


def _set_stream(stream: Any) -> None:
    torch.cuda.set_stream(stream)


def _synchronize(device: int) -> None:
    gpus.gpu_of(device).synchronize()


_ACCELERATOR: dict[str, Any] = {
    "_accelerator_getAccelerator": lambda: torch.device("cuda"),
    "_accelerator_getDeviceIndex": gpus.current,
    "_accelerator_setDeviceIndex": gpus.set_current,
    "_accelerator_getStream": lambda device: torch.cuda.current_stream(device),
    "_accelerator_setStream": _set_stream,
    "_accelerator_synchronizeDevice": _synchronize,
    "_accelerator_exchangeDevice": _exchange,
    "_accelerator_maybeExchangeDevice": _exchange,
    "_accelerator_isAllocatorInitialized": lambda: bool(gpus.made()),
    "_accelerator_emptyCache": lambda: torch.cuda.empty_cache(),
    "_accelerator_getDeviceStats": lambda device: torch._C._cuda_memoryStats(device),
    "_accelerator_resetAccumulatedStats": lambda device: torch._C._cuda_resetPeakMemoryStats(device),
    "_accelerator_resetPeakStats": lambda device: torch._C._cuda_resetPeakMemoryStats(device),
    "_accelerator_getMemoryInfo": lambda device: torch.cuda.mem_get_info(device),
}


def install() -> None:
    """Replaces what the table names."""
    _install_guard()
    for name, function in _ACCELERATOR.items():
        setattr(torch._C, name, function)
    torch.accelerator.device_count.__globals__["torch"]._C._accelerator_deviceCount = gpus.count
    torch._C._dynamo.guards._empty_strided_cuda = empty_strided
    torch._subclasses.fake_tensor.init_gpu_context = lambda device: None
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, simulated_bench)
