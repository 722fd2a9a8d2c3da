"""What of PyTorch 2.13 and Triton 3.9 is replaced for simulated GPUs, all of it, and why.

| replaced | because |
|---|---|
| what ATen's `CUDAHooksInterface` says of CUDA | that there is none, so autograd refuses its tensors |
| what `PrivateUse1HooksInterface` says of pinned memory | Python cannot return an allocator |
| c10's device guards of CUDA and PrivateUse1 | there are none; that for devices in Python knows only one |
| `torch._C._accelerator_*` | they ask C++ for an accelerator; the simulated one is not known there |
| `triton.testing.do_bench`, `do_bench_cudagraph` | they repeat for 100 ms, which takes hours to simulate |
| `torch._C._dynamo.guards._empty_strided_cuda` | it is C++ that a build for the CPU has not |
| `torch.Stream`, `torch.Event` | their C++ asks guards for streams, by values that Python cannot return |
| `torch.UntypedStorage.__new__` | the C++ below it makes no storages on CUDA |
| the fast path of `torch.nn.MultiheadAttention` (switched off) | one operator in C++, for the CPU and CUDA |
| what `torch.profiler` calls to start and stop | it is C++, which knows no simulated GPU (`profiling`) |
| what Triton's profiler Proton calls | it is C++, which asks CUPTI for times (`proton`) |
| `torch._inductor.compile_fx.compile_fx` (for "simt") | Inductor has templates for "cuda" (`named_compile`) |
| FlexAttention's list of devices (for "simt") | it is closed |
| `nvidia.cublas.CublasLt` of Triton | it loads a library that is not there |
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
from torch.nn.attention import flex_attention
from triton._C import libtriton

from . import gpus
from .cublas import CublasLt
from .eager import KEYS, apart, empty_strided
from .triton_driver import simulated_bench

VERSIONS = {"torch": "2.13", "triton": "3.9"}
_CUDA, _SIMT = 1, 20
"""PyTorch's numbers of device types (c10/core/DeviceType.h)."""


def _index(device: int) -> int:
    """Of a `c10::Device` as it is passed in a register: its type, and its index above."""
    return max(0, ((device >> 8 & 0xFF) ^ 0x80) - 0x80)


def _functions(type: int) -> dict[int, Any]:
    """Virtual functions of `c10::impl::DeviceGuardImplInterface` of PyTorch 2.13, by their place: `type`,
    `exchangeDevice`, `getDevice`, `setDevice`, `uncheckedSetDevice`, `deviceCount`."""

    def exchange(this: int, device: int) -> int:
        before = gpus.current()
        gpus.set_current(_index(device))
        return type | before << 8

    def choose(this: int, device: int) -> None:
        gpus.set_current(_index(device))

    this, device = ctypes.c_void_p, ctypes.c_uint16
    return {
        0: ctypes.CFUNCTYPE(ctypes.c_int8, this)(lambda this: type),
        1: ctypes.CFUNCTYPE(device, this, device)(exchange),
        2: ctypes.CFUNCTYPE(device, this)(lambda this: type | gpus.current() << 8),
        3: ctypes.CFUNCTYPE(None, this, device)(choose),
        4: ctypes.CFUNCTYPE(None, this, device)(choose),
        15: ctypes.CFUNCTYPE(ctypes.c_int8, this)(lambda this: gpus.count()),
    }


_VIRTUAL = 26
"""Functions of the interface, destructors included."""
_kept: list[Any] = []


class _CudaGuard(torch._C._acc.DeviceGuard):  # type: ignore[misc]
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.CUDA


class _SimtGuard(torch._C._acc.DeviceGuard):  # type: ignore[misc]
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


def _install_guards() -> None:
    """PyTorch's own guard for devices in Python knows one device, and only the name PrivateUse1."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * (_SIMT + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    for type, made in ((_CUDA, _CudaGuard()), (_SIMT, _SimtGuard())):
        guards[_SIMT] = None
        torch._C._acc.register_python_privateuseone_device_guard(made)
        place = guards[_SIMT]
        _replace(int(place or 0), _VIRTUAL, _functions(type))
        guards[type] = place
        _kept.append(made)


_HOOKS = {
    "cuda": ("_ZN2at6detail12getCUDAHooksEv", 16 + 35),
    "simt": ("_ZN2at6detail19getPrivateUse1HooksEv", 16 + 1),
}
"""What returns ATen's hooks of a device, and how many virtual functions: 16 of any accelerator."""


def _install_hooks(type: str) -> None:
    """What C++ asks about a device: that it is there, and for generators, which are the host's."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    name, size = _HOOKS[type]
    hooks = getattr(library, name)
    hooks.restype = ctypes.c_void_p
    make = library._ZN2at6detail18createCPUGeneratorEm
    make.restype, make.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_uint64]

    cpu = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))._ZN3c1015GetCPUAllocatorEv
    cpu.restype = ctypes.c_void_p

    def new_generator(result: int, this: int, device: int) -> int:
        make(result, 67280421310721)  # c10::detail::default_rng_seed_val
        return result

    this, device, yes = ctypes.c_void_p, ctypes.c_int8, ctypes.c_bool
    functions = {
        2: ctypes.CFUNCTYPE(yes, this)(lambda this: True),  # isBuilt
        3: ctypes.CFUNCTYPE(yes, this)(lambda this: True),  # isAvailable
        4: ctypes.CFUNCTYPE(yes, this, device)(lambda this, device: True),  # hasPrimaryContext
        5: ctypes.CFUNCTYPE(None, this)(lambda this: None),  # init
        6: ctypes.CFUNCTYPE(device, this)(lambda this: gpus.count()),  # deviceCount
        7: ctypes.CFUNCTYPE(None, this, device)(lambda this, device: gpus.set_current(device)),
        8: ctypes.CFUNCTYPE(device, this)(lambda this: gpus.current()),  # getCurrentDevice
        9: ctypes.CFUNCTYPE(device, this, device)(lambda this, device: _exchange(device)),
        10: ctypes.CFUNCTYPE(device, this, device)(lambda this, device: _exchange(device)),
        # A simulated GPU reads all of the host's memory alike: all of it counts as pinned.
        11: ctypes.CFUNCTYPE(yes, this, this)(lambda this, pointer: True),  # isPinnedPtr
        12: ctypes.CFUNCTYPE(this, this)(lambda this: cpu()),  # getPinnedMemoryAllocator
        15: ctypes.CFUNCTYPE(this, this, this, device)(new_generator),  # getNewGenerator
    }
    if type == "cuda":
        functions[16] = ctypes.CFUNCTYPE(yes, this)(lambda this: True)  # hasCUDA
    _replace(hooks(), size, functions)


def _replace(place: int, size: int, functions: dict[int, Any]) -> None:
    """Gives a C++ object other virtual functions. size: how many it has. functions: by their number."""
    vtable = ctypes.cast(place, ctypes.POINTER(ctypes.c_void_p))
    # What precedes a table is an offset, and information about the type.
    copied = (ctypes.c_void_p * (size + 2)).from_address(vtable[0] - 16)
    table = (ctypes.c_void_p * (size + 2))(*copied)
    for number, function in functions.items():
        table[number + 2] = ctypes.cast(function, ctypes.c_void_p).value
    vtable[0] = ctypes.addressof(table) + 16
    _kept.extend((table, functions))


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
    "_accelerator_getDeviceIndex": gpus.current,
    "_accelerator_setDeviceIndex": gpus.set_current,
    "_accelerator_getStream": apart(lambda device: torch.cuda.current_stream(device)),  # Dynamo's guards ask
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


def _new_storage(make: Any) -> Any:
    def new(cls: Any, *arguments: Any, device: Any = None, **others: Any) -> Any:
        place = torch.device(device) if device is not None else None
        if place is None or place.type not in KEYS:
            return make(cls, *arguments, device=device, **others)
        contents = arguments[0] if arguments else 0
        if isinstance(contents, int):
            return gpus.gpu_of(place).storage(contents, place.type).untyped_storage()
        return torch.tensor(contents, dtype=torch.uint8, device=place).untyped_storage()

    return new


def _let_flex_attention_run() -> None:
    check = flex_attention._validate_device

    def validate(query: Any, key: Any, value: Any) -> None:
        if query.device.type != "simt":
            check(query, key, value)

    flex_attention._validate_device = validate


def install(type: str) -> None:
    """Replaces what the table names. type: the accelerator, "cuda" or "simt"."""
    _install_guards()
    _install_hooks(type)
    if type == "simt":
        _let_flex_attention_run()
    for name, function in _ACCELERATOR.items():
        setattr(torch._C, name, function)
    torch._C._accelerator_getAccelerator = lambda: torch.device(type)
    torch.accelerator.device_count.__globals__["torch"]._C._accelerator_deviceCount = gpus.count
    torch._C._dynamo.guards._empty_strided_cuda = empty_strided
    torch._subclasses.fake_tensor.init_gpu_context = lambda device: None
    torch.UntypedStorage.__new__ = _new_storage(torch.UntypedStorage.__new__)
    torch.backends.mha.set_fastpath_enabled(False)
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, simulated_bench)
    libtriton.nvidia.cublas.CublasLt = CublasLt
