"""A stand-in for NVIDIA's driver library: a GPU whose kernels our engine executes.

It takes what `simt.cuda.driver` passes through ctypes, writes through the pointers that it is given, and
keeps the rules that the real one has: addresses must be free, handles must exist, sizes must fit.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from simt import _engine
from simt.cuda import PtxModule
from simt.errors import ProgramFault, PtxError
from simt.gpu import GPU
from simt.gpu.module import Launcher

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_PTX, UNSUPPORTED_PTX = 0, 1, 2, 218, 222
NOT_FOUND, ILLEGAL_ADDRESS = 500, 700
NAMES = {
    INVALID_VALUE: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    OUT_OF_MEMORY: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    INVALID_PTX: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    UNSUPPORTED_PTX: (
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "the PTX is newer than the driver",
    ),
    NOT_FOUND: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    ILLEGAL_ADDRESS: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
}
PAGE = 2 << 20
_MACHINE = {
    "sm_version": 80,
    "sm_count": 2,
    "warps_per_sm": 64,
    "threads_per_cta": 1024,
    "shared_bytes_per_cta": 160 << 10,
    "resident_ctas": 64,
}


def _at(pointer: Any) -> Any:
    """What a pointer made by `byref` points to."""
    return pointer._obj


class FakeCuda:
    """change: what the GPU makes of PTX before it executes it, such as another rounding: its bug.
    mapped_elsewhere: whether memory cannot be had at the address that is asked for.
    """

    def __init__(
        self, change: Callable[[str], str] = lambda text: text, mapped_elsewhere: bool = False
    ) -> None:
        self._change = change
        self._elsewhere = mapped_elsewhere
        self._modules: dict[int, Any] = {}
        self._kernels: dict[int, tuple[Any, str]] = {}
        self._memory = _engine.functional.DeviceMemory(1 << 36)
        self._handles = 100
        self._fault = 0
        self._time = 0.0
        self._events: dict[int, float] = {}
        self._reserved: dict[int, int] = {}
        self.launches: list[dict[str, Any]] = []
        self.resets = 0

    # The engine keeps what is mapped and what is allocated in one memory; mapped pages come first.

    def _handle(self) -> int:
        self._handles += 1
        return self._handles

    def cuInit(self, flags: int) -> int:
        return SUCCESS

    def cuDriverGetVersion(self, version: Any) -> int:
        _at(version).value = 12080
        return SUCCESS

    def cuGetErrorName(self, status: int, text: Any) -> int:
        _at(text).value = NAMES[status][0].encode()
        return SUCCESS

    def cuGetErrorString(self, status: int, text: Any) -> int:
        _at(text).value = NAMES[status][1].encode()
        return SUCCESS

    def cuDeviceGetCount(self, count: Any) -> int:
        _at(count).value = 1
        return SUCCESS

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        _at(device).value = 0
        return SUCCESS

    def cuDeviceGetName(self, text: Any, size: int, device: int) -> int:
        text.value = b"Fake GPU"
        return SUCCESS

    def cuDeviceTotalMem_v2(self, size: Any, device: int) -> int:
        _at(size).value = 1 << 36
        return SUCCESS

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> int:
        known = {10: 32, 13: 1_410_000, 16: 2, 75: 8, 76: 0, 102: 1}
        if attribute not in known:
            return INVALID_VALUE
        _at(value).value = known[attribute]
        return SUCCESS

    def cuDevicePrimaryCtxRetain(self, context: Any, device: int) -> int:
        _at(context).value = 7
        return SUCCESS

    def cuDevicePrimaryCtxRelease_v2(self, device: int) -> int:
        return SUCCESS

    def cuDevicePrimaryCtxReset_v2(self, device: int) -> int:
        self.resets += 1
        self._fault = 0
        self._memory = _engine.functional.DeviceMemory(1 << 36)
        self._modules, self._reserved = {}, {}
        return SUCCESS

    def cuCtxSetCurrent(self, context: Any) -> int:
        return SUCCESS

    def cuCtxSynchronize(self) -> int:
        return self._fault

    def cuModuleLoadDataEx(self, module: Any, image: Any, count: int, options: Any, values: Any) -> int:
        logs = dict(zip(list(options), list(values), strict=True))
        try:
            text = self._change(image.value.decode())
            loaded = _engine.functional.load(text, "fake", self._memory)
        except PtxError as error:
            said = f"ptxas fake; error: {error}".encode()[: logs[6] - 1]
            ctypes.memmove(logs[5], said + b"\0", len(said) + 1)
            return INVALID_PTX
        said = b"info: 0 bytes gmem\0"
        ctypes.memmove(logs[3], said, len(said))
        _at(module).value = self._handle()
        self._modules[_at(module).value] = loaded
        return SUCCESS

    def cuModuleUnload(self, module: Any) -> int:
        return SUCCESS if self._modules.pop(module.value, None) is not None else INVALID_VALUE

    def cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:
        loaded = self._modules[module.value]
        if name.value.decode() not in loaded.kernels:
            return NOT_FOUND
        _at(function).value = self._handle()
        self._kernels[_at(function).value] = (loaded, name.value.decode())
        return SUCCESS

    def cuModuleGetGlobal_v2(self, address: Any, size: Any, module: Any, name: Any) -> int:
        variables = self._modules[module.value].variables
        if name.value.decode() not in variables:
            return NOT_FOUND
        _at(address).value, _at(size).value = variables[name.value.decode()]
        return SUCCESS

    def cuFuncGetAttribute(self, value: Any, attribute: int, function: Any) -> int:
        loaded, name = self._kernels[function.value]
        known = {1: loaded.kernels[name]["shared_bytes"], 4: loaded.kernels[name]["registers"]}
        if attribute not in known:
            return INVALID_VALUE
        _at(value).value = known[attribute]
        return SUCCESS

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        return SUCCESS if attribute == 8 and value <= 160 << 10 else INVALID_VALUE

    def cuMemAlloc_v2(self, address: Any, size: Any) -> int:
        _at(address).value = self._memory.allocate(size.value, "cuMemAlloc")
        return SUCCESS if size.value else INVALID_VALUE

    def cuMemFree_v2(self, address: Any) -> int:
        return SUCCESS if self._memory.free(address.value) else INVALID_VALUE

    def cuMemcpyHtoD_v2(self, address: Any, data: Any, size: Any) -> int:
        try:
            self._memory.write(address.value, ctypes.string_at(data, size.value))
        except IndexError:
            return INVALID_VALUE
        return SUCCESS

    def cuMemsetD8_v2(self, address: Any, value: Any, size: Any) -> int:
        try:
            self._memory.write(address.value, bytes([value.value]) * size.value)
        except IndexError:
            return INVALID_VALUE
        return SUCCESS

    def cuMemcpyDtoH_v2(self, data: Any, address: Any, size: Any) -> int:
        try:
            ctypes.memmove(data, self._memory.read(address.value, size.value), size.value)
        except IndexError:
            return INVALID_VALUE
        return SUCCESS

    def cuMemGetAllocationGranularity(self, size: Any, properties: Any, option: int) -> int:
        made = _at(properties)
        _at(size).value = PAGE
        return SUCCESS if (made.type, made.location.type, made.location.id) == (1, 1, 0) else INVALID_VALUE

    def cuMemAddressReserve(self, found: Any, size: Any, alignment: Any, wanted: Any, flags: Any) -> int:
        if size.value % PAGE or wanted.value % PAGE:
            return INVALID_VALUE
        _at(found).value = wanted.value + (PAGE << 8 if self._elsewhere else 0)
        self._reserved[_at(found).value] = size.value
        return SUCCESS

    def cuMemCreate(self, handle: Any, size: Any, properties: Any, flags: Any) -> int:
        _at(handle).value = self._handle()
        return SUCCESS

    def cuMemMap(self, address: Any, size: Any, offset: Any, handle: Any, flags: Any) -> int:
        if self._reserved.get(address.value) != size.value or not handle.value:
            return INVALID_VALUE
        fits = self._memory.allocate_at(address.value, size.value, "mapped")
        return SUCCESS if fits else INVALID_VALUE

    def cuMemSetAccess(self, address: Any, size: Any, access: Any, count: Any) -> int:
        return SUCCESS if _at(access).flags == 3 and count.value == 1 else INVALID_VALUE

    def cuMemUnmap(self, address: Any, size: Any) -> int:
        return SUCCESS if self._memory.free(address.value) else INVALID_VALUE

    def cuMemRelease(self, handle: Any) -> int:
        return SUCCESS

    def cuMemAddressFree(self, address: Any, size: Any) -> int:
        return SUCCESS if self._reserved.pop(address.value, 0) == size.value else INVALID_VALUE

    def cuEventCreate(self, event: Any, flags: int) -> int:
        _at(event).value = self._handle()
        return SUCCESS

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        self._events[event.value] = self._time
        return SUCCESS

    def cuEventSynchronize(self, event: Any) -> int:
        return SUCCESS if event.value in self._events else INVALID_VALUE

    def cuEventElapsedTime(self, elapsed: Any, start: Any, end: Any) -> int:
        _at(elapsed).value = self._events[end.value] - self._events[start.value]
        return SUCCESS

    def cuEventDestroy_v2(self, event: Any) -> int:
        return SUCCESS if self._events.pop(event.value, None) is not None else INVALID_VALUE

    def cuLaunchKernelEx(self, config: Any, function: Any, parameters: Any, extra: Any) -> int:
        made = _at(config)
        loaded, name = self._kernels[function.value]
        block = b""
        if extra is not None:
            given = list(extra)
            if [given[0], given[2], given[4]] != [1, 2, None]:
                return INVALID_VALUE
            block = ctypes.string_at(given[1], ctypes.cast(given[3], ctypes.POINTER(ctypes.c_size_t))[0])
        cluster = (1, 1, 1)
        if made.attribute_count:
            words = ctypes.cast(made.attributes, ctypes.POINTER(ctypes.c_uint * 5))[0]
            if words[0] != 4:
                return INVALID_VALUE
            cluster = tuple(words[2:5])
        launch = {
            "kernel": name,
            "grid": tuple(made.grid),
            "block": tuple(made.block),
            "shared": made.shared,
            "cluster": cluster,
            "parameters": block,
        }
        self.launches.append(launch)
        return self._run(loaded, launch)

    def _run(self, loaded: Any, launch: dict[str, Any]) -> int:
        self._time += 0.5
        try:
            _engine.functional.run(
                loaded,
                loaded.kernels[launch["kernel"]]["index"],
                launch["grid"],
                launch["block"],
                launch["cluster"],
                launch["shared"],
                launch["parameters"],
                _MACHINE,
                1,
                len(self.launches),
                None,
            )
        except _engine.functional.ProgramFault:
            self._fault = ILLEGAL_ADDRESS
        return SUCCESS


class SimulatedCuda(FakeCuda):
    """A GPU that our engine simulates with its timing, behind the driver's interface: what is measured on it
    must be what is measured on the simulated GPU itself.

    A launch is put into the queue at once, so the host is never slow.
    """

    def __init__(self, gpu: str, **options: Any) -> None:
        super().__init__()
        self.gpu = GPU(gpu, **options)
        self._memory = self.gpu.memory.native

    def cuDevicePrimaryCtxReset_v2(self, device: int) -> int:
        self.resets += 1
        self._fault = 0
        return SUCCESS

    def cuDeviceGetName(self, text: Any, size: int, device: int) -> int:
        text.value = self.gpu.spec.name.encode()
        return SUCCESS

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> int:
        spec = self.gpu.spec
        known = {
            10: spec.sm.warp_size,
            13: round(1000 * spec.clock.core_mhz),
            16: spec.sm.count,
            36: round(1000 * spec.clock.dram_mhz),
            37: 8 * spec.dram.bus_bytes * spec.address_map.channels,
            38: spec.l2.slice.bytes * spec.address_map.slices,
            39: spec.sm.max_warps * spec.sm.warp_size,
            75: spec.sm_version // 10,
            76: spec.sm_version % 10,
            81: spec.shared_memory.bytes,
            82: spec.sm.register_file.registers,
            97: spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta,
            106: spec.sm.max_ctas,
            111: spec.shared_memory.reserved_per_cta,
        }
        if attribute not in known:
            return INVALID_VALUE
        _at(value).value = known[attribute]
        return SUCCESS

    def cuModuleLoadDataEx(self, module: Any, image: Any, count: int, options: Any, values: Any) -> int:
        loaded = self.gpu.load(PtxModule.from_text(image.value.decode(), "fake"))
        _at(module).value = self._handle()
        self._modules[_at(module).value] = loaded
        return SUCCESS

    def cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:
        loaded = self._modules[module.value]
        if name.value.decode() not in loaded.kernels:
            return NOT_FOUND
        _at(function).value = self._handle()
        self._kernels[_at(function).value] = (loaded, name.value.decode())
        return SUCCESS

    def cuModuleGetGlobal_v2(self, address: Any, size: Any, module: Any, name: Any) -> int:
        variables = self._modules[module.value].native.variables
        if name.value.decode() not in variables:
            return NOT_FOUND
        _at(address).value, _at(size).value = variables[name.value.decode()]
        return SUCCESS

    def cuFuncGetAttribute(self, value: Any, attribute: int, function: Any) -> int:
        loaded, name = self._kernels[function.value]
        facts = loaded[name].facts
        known = {1: facts.shared_bytes, 4: facts.registers}
        if attribute not in known:
            return INVALID_VALUE
        _at(value).value = known[attribute]
        return SUCCESS

    def cuMemAlloc_v2(self, address: Any, size: Any) -> int:
        _at(address).value = self._memory.allocate(size.value, "cuMemAlloc")
        return SUCCESS if _at(address).value else OUT_OF_MEMORY

    def cuMemcpyHtoD_v2(self, address: Any, data: Any, size: Any) -> int:
        self.gpu.write(address.value, np.frombuffer(ctypes.string_at(data, size.value), np.uint8))
        return SUCCESS

    def _run(self, loaded: Any, launch: dict[str, Any]) -> int:
        launcher = Launcher(
            loaded[launch["kernel"]],
            launch["grid"],
            launch["block"],
            launch["shared"],
            None,
            launch["cluster"],
        )
        try:
            done = self.gpu.launch(launcher, lambda: _Packed(launch["parameters"]))  # type: ignore[arg-type]
        except ProgramFault:
            self._fault = ILLEGAL_ADDRESS
        else:
            assert done is not None
            self._time = done.end_cycle / (1e3 * self.gpu.spec.clock.core_mhz)
        return SUCCESS


class _Packed:
    """A launch's parameters as the driver gets them, in the place of `Arguments`."""

    has_host_arrays = False
    keeps: tuple[Any, ...] = ()

    def __init__(self, block: bytes) -> None:
        self.block = block

    def copy_back(self) -> None:
        """Nothing was copied."""

    discard = copy_back


def replacing(pattern: str, replacement: str) -> Callable[[str], str]:
    """A change of PTX for `FakeCuda`: a bug of the GPU."""
    return lambda text: re.sub(pattern, replacement, text)
