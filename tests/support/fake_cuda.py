"""A stand-in for `cuda.bindings.driver`: a GPU whose kernels our engine executes.

Its functions take and return what those of the bindings do, with the bindings' types, and keep the driver's
rules: addresses must be free, handles must exist, sizes must fit.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from cuda.bindings import driver

from simt import _engine
from simt.cuda import PtxModule
from simt.errors import ProgramFault, PtxError
from simt.gpu import GPU
from simt.gpu.module import Launcher

Status = driver.CUresult
INVALID_VALUE, NOT_FOUND = (Status.CUDA_ERROR_INVALID_VALUE, None), (Status.CUDA_ERROR_NOT_FOUND, None)
TEXTS = {
    Status.CUDA_ERROR_INVALID_VALUE: b"invalid argument",
    Status.CUDA_ERROR_OUT_OF_MEMORY: b"out of memory",
    Status.CUDA_ERROR_INVALID_PTX: b"a PTX JIT compilation failed",
    Status.CUDA_ERROR_UNSUPPORTED_PTX_VERSION: b"the PTX is newer than the driver",
    Status.CUDA_ERROR_NOT_FOUND: b"named symbol not found",
    Status.CUDA_ERROR_ILLEGAL_ADDRESS: b"an illegal memory access was encountered",
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


Answer = tuple[Any, ...]


def done(*values: Any) -> Answer:
    return Status.CUDA_SUCCESS, *values


class FakeCuda:
    """change: applied to PTX before execution, such as another rounding: the GPU's bug. mapped_elsewhere:
    whether memory cannot be mapped at the requested address.
    """

    name = "Fake GPU"
    attributes: Mapping[str, int] = {
        "WARP_SIZE": 32,
        "CLOCK_RATE": 1_410_000,
        "MULTIPROCESSOR_COUNT": 2,
        "COMPUTE_CAPABILITY_MAJOR": 8,
        "COMPUTE_CAPABILITY_MINOR": 0,
        "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": 1,
    }

    def __init__(
        self, change: Callable[[str], str] = lambda text: text, mapped_elsewhere: bool = False
    ) -> None:
        self._change = change
        self._elsewhere = mapped_elsewhere
        self._modules: dict[int, Any] = {}
        self._kernels: dict[int, tuple[Any, str]] = {}
        self._memory = _engine.functional.DeviceMemory(1 << 36)
        self._handles = 100
        self._fault = Status.CUDA_SUCCESS
        self._time = 0.0
        self._events: dict[int, float] = {}
        self._reserved: dict[int, int] = {}
        self.launches: list[dict[str, Any]] = []
        self.resets = 0

    # The engine keeps mapped and allocated memory in one address space; mapped pages come first.

    def __getattr__(self, name: str) -> Any:
        """The bindings' types and constants; functions not defined below are missing in the driver."""
        if name.startswith("cu"):
            raise RuntimeError(f"Function {name} not found")
        return getattr(driver, name)

    def _handle(self) -> int:
        self._handles += 1
        return self._handles

    def cuInit(self, flags: int) -> Answer:
        return done()

    def cuDriverGetVersion(self) -> Answer:
        return done(12080)

    def cuGetErrorString(self, status: Any) -> Answer:
        return done(TEXTS[status])

    def cuDeviceGetCount(self) -> Answer:
        return done(1)

    def cuDeviceGet(self, ordinal: int) -> Answer:
        return done(driver.CUdevice(ordinal))

    def cuDeviceGetName(self, length: int, device: Any) -> Answer:
        return done(self.name.encode().ljust(length, b"\0"))

    def cuDeviceGetPCIBusId(self, length: int, device: Any) -> Answer:
        return done(b"0000:3b:00.0".ljust(length, b"\0"))

    def cuDeviceTotalMem(self, device: Any) -> Answer:
        return done(1 << 36)

    def cuDeviceGetAttribute(self, attribute: Any, device: Any) -> Answer:
        numbers = driver.CUdevice_attribute
        known = {getattr(numbers, f"CU_DEVICE_ATTRIBUTE_{name}"): of for name, of in self.attributes.items()}
        return done(known[attribute]) if attribute in known else INVALID_VALUE

    def cuDevicePrimaryCtxRetain(self, device: Any) -> Answer:
        return done(driver.CUcontext(7))

    def cuDevicePrimaryCtxRelease(self, device: Any) -> Answer:
        return done()

    def cuDevicePrimaryCtxReset(self, device: Any) -> Answer:
        self.resets += 1
        self._fault = Status.CUDA_SUCCESS
        self._memory = _engine.functional.DeviceMemory(1 << 36)
        self._modules, self._reserved = {}, {}
        return done()

    def cuCtxSetCurrent(self, context: Any) -> Answer:
        return done()

    def cuCtxSynchronize(self) -> Answer:
        return (self._fault,)

    def cuModuleLoadDataEx(self, image: bytes, count: int, options: list[Any], values: list[Any]) -> Answer:
        logs = {option.name: value for option, value in zip(options, values, strict=True)}
        try:
            text = self._change(image.rstrip(b"\0").decode())
            loaded = _engine.functional.load(text, "fake", self._memory)
        except PtxError as error:
            said = f"ptxas fake; error: {error}".encode()[: logs["CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES"] - 1]
            logs["CU_JIT_ERROR_LOG_BUFFER"][: len(said)] = said
            return Status.CUDA_ERROR_INVALID_PTX, None
        said = b"info: 0 bytes gmem"
        logs["CU_JIT_INFO_LOG_BUFFER"][: len(said)] = said
        return self._module(loaded)

    def _module(self, loaded: Any) -> Answer:
        module = driver.CUmodule(self._handle())
        self._modules[int(module)] = loaded
        return done(module)

    def cuModuleUnload(self, module: Any) -> Answer:
        return done() if self._modules.pop(int(module), None) is not None else INVALID_VALUE

    def cuModuleGetFunction(self, module: Any, name: bytes) -> Answer:
        loaded = self._modules[int(module)]
        if name.decode() not in loaded.kernels:
            return NOT_FOUND
        function = driver.CUfunction(self._handle())
        self._kernels[int(function)] = (loaded, name.decode())
        return done(function)

    def cuModuleGetGlobal(self, module: Any, name: bytes) -> Answer:
        variables = self._variables(self._modules[int(module)])
        if name.decode() not in variables:
            return *NOT_FOUND, None
        address, size = variables[name.decode()]
        return done(driver.CUdeviceptr(address), size)

    def _variables(self, loaded: Any) -> Any:
        return loaded.variables

    def cuFuncGetAttribute(self, attribute: Any, function: Any) -> Answer:
        shared_bytes, registers = self._resources(*self._kernels[int(function)])
        known = {
            driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: shared_bytes,
            driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS: registers,
        }
        return done(known[attribute]) if attribute in known else INVALID_VALUE

    def _resources(self, loaded: Any, name: str) -> tuple[int, int]:
        return loaded.kernels[name]["shared_bytes"], loaded.kernels[name]["registers"]

    def cuFuncSetAttribute(self, function: Any, attribute: Any, value: int) -> Answer:
        dynamic = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        return done() if attribute == dynamic and value <= 160 << 10 else INVALID_VALUE

    def cuMemAlloc(self, size: int) -> Answer:
        address = self._memory.allocate(size, "cuMemAlloc")
        return done(driver.CUdeviceptr(address)) if size else INVALID_VALUE

    def cuMemFree(self, address: int) -> Answer:
        return done() if self._memory.free(address) else INVALID_VALUE

    def cuMemcpyHtoD(self, address: int, data: bytes, size: int) -> Answer:
        try:
            self._memory.write(address, data[:size])
        except IndexError:
            return INVALID_VALUE
        return done()

    def cuMemsetD8(self, address: int, value: int, size: int) -> Answer:
        return self.cuMemcpyHtoD(address, bytes([value]) * size, size)

    def cuMemcpyDtoH(self, data: bytearray, address: int, size: int) -> Answer:
        try:
            data[:] = self._memory.read(address, size)
        except IndexError:
            return INVALID_VALUE
        return done()

    def cuMemGetAllocationGranularity(self, properties: Any, option: Any) -> Answer:
        made = (properties.type, properties.location.type, properties.location.id)
        on_device = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        pinned = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        return done(PAGE) if made == (pinned, on_device, 0) else INVALID_VALUE

    def cuMemAddressReserve(self, size: int, alignment: int, wanted: int, flags: int) -> Answer:
        if size % PAGE or wanted % PAGE:
            return INVALID_VALUE
        found = wanted + (PAGE << 8 if self._elsewhere else 0)
        self._reserved[found] = size
        return done(driver.CUdeviceptr(found))

    def cuMemCreate(self, size: int, properties: Any, flags: int) -> Answer:
        return done(driver.CUmemGenericAllocationHandle(self._handle()))

    def cuMemMap(self, address: int, size: int, offset: int, handle: Any, flags: int) -> Answer:
        if self._reserved.get(address) != size or not int(handle):
            return INVALID_VALUE
        return done() if self._memory.allocate_at(address, size, "mapped") else INVALID_VALUE

    def cuMemSetAccess(self, address: int, size: int, access: list[Any], count: int) -> Answer:
        both = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        return done() if [a.flags for a in access] == [both] and count == 1 else INVALID_VALUE

    def cuMemUnmap(self, address: int, size: int) -> Answer:
        return done() if self._memory.free(address) else INVALID_VALUE

    def cuMemRelease(self, handle: Any) -> Answer:
        return done()

    def cuMemAddressFree(self, address: int, size: int) -> Answer:
        return done() if self._reserved.pop(address, 0) == size else INVALID_VALUE

    def cuEventCreate(self, flags: int) -> Answer:
        return done(driver.CUevent(self._handle()))

    def cuEventRecord(self, event: Any, stream: Any) -> Answer:
        self._events[int(event)] = self._time
        return done()

    def cuEventSynchronize(self, event: Any) -> Answer:
        return done() if int(event) in self._events else INVALID_VALUE

    def cuEventElapsedTime(self, start: Any, end: Any) -> Answer:
        return done(self._events[int(end)] - self._events[int(start)])

    def cuEventDestroy(self, event: Any) -> Answer:
        return done() if self._events.pop(int(event), None) is not None else INVALID_VALUE

    def cuLaunchKernelEx(self, config: Any, function: Any, parameters: Any, extra: int) -> Answer:
        loaded, name = self._kernels[int(function)]
        block = b""
        if extra:
            given = ctypes.cast(extra, ctypes.POINTER(ctypes.c_uint64 * 5))[0]
            if [given[0], given[2], given[4]] != [1, 2, 0]:  # CU_LAUNCH_PARAM_* of cuda.h
                return INVALID_VALUE
            block = ctypes.string_at(given[1], ctypes.cast(given[3], ctypes.POINTER(ctypes.c_size_t))[0])
        cluster = (1, 1, 1)
        for attribute in config.attrs[: config.numAttrs]:
            if attribute.id != driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                return INVALID_VALUE
            dimensions = attribute.value.clusterDim
            cluster = (dimensions.x, dimensions.y, dimensions.z)
        launch = {
            "kernel": name,
            "grid": (config.gridDimX, config.gridDimY, config.gridDimZ),
            "block": (config.blockDimX, config.blockDimY, config.blockDimZ),
            "shared": config.sharedMemBytes,
            "cluster": cluster,
            "parameters": block,
        }
        self.launches.append(launch)
        self._run(loaded, launch)
        return done()

    def _run(self, loaded: Any, launch: dict[str, Any]) -> None:
        self._time += 0.5
        try:
            _engine.functional.Launch(
                loaded,
                loaded.kernels[launch["kernel"]]["index"],
                launch["grid"],
                launch["block"],
                launch["cluster"],
                launch["shared"],
                _MACHINE,
            ).run(launch["parameters"], len(self.launches))
        except _engine.functional.ProgramFault:
            self._fault = Status.CUDA_ERROR_ILLEGAL_ADDRESS


class SimulatedCuda(FakeCuda):
    """A GPU that our engine simulates with its timing, behind the driver's interface: what is measured on it
    must be what is measured on the simulated GPU itself.

    A launch is put into the queue at once, so the host is never slow.
    """

    def __init__(self, gpu: str, **options: Any) -> None:
        super().__init__()
        self.gpu = GPU(gpu, **options)
        self._memory = self.gpu.memory.native
        spec = self.gpu.spec
        self.name = spec.name
        self.attributes = {
            "WARP_SIZE": spec.sm.warp_size,
            "CLOCK_RATE": round(1000 * spec.clock.core_mhz),
            "MULTIPROCESSOR_COUNT": spec.sm.count,
            "MEMORY_CLOCK_RATE": round(1000 * spec.clock.dram_mhz),
            "GLOBAL_MEMORY_BUS_WIDTH": (8 * spec.dram.bus_bytes * spec.address_map.channels),
            "L2_CACHE_SIZE": spec.l2.slice.bytes * spec.address_map.slices,
            "MAX_THREADS_PER_MULTIPROCESSOR": spec.sm.max_warps * spec.sm.warp_size,
            "COMPUTE_CAPABILITY_MAJOR": spec.sm_version // 10,
            "COMPUTE_CAPABILITY_MINOR": spec.sm_version % 10,
            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": spec.shared_memory.bytes,
            "MAX_REGISTERS_PER_MULTIPROCESSOR": spec.sm.register_file.registers,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": (
                spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta
            ),
            "MAX_BLOCKS_PER_MULTIPROCESSOR": spec.sm.max_ctas,
            "RESERVED_SHARED_MEMORY_PER_BLOCK": spec.shared_memory.reserved_per_cta,
        }

    def cuDevicePrimaryCtxReset(self, device: Any) -> Answer:
        self.resets += 1
        self._fault = Status.CUDA_SUCCESS
        return done()

    def cuModuleLoadDataEx(self, image: bytes, count: int, options: list[Any], values: list[Any]) -> Answer:
        return self._module(self.gpu.load(PtxModule.from_text(image.rstrip(b"\0").decode(), "fake")))

    def _variables(self, loaded: Any) -> Any:
        return loaded.native.variables

    def _resources(self, loaded: Any, name: str) -> tuple[int, int]:
        return loaded[name].facts.shared_bytes, loaded[name].facts.registers

    def cuMemAlloc(self, size: int) -> Answer:
        address = self._memory.allocate(size, "cuMemAlloc")
        return done(driver.CUdeviceptr(address)) if address else (Status.CUDA_ERROR_OUT_OF_MEMORY, None)

    def cuMemcpyHtoD(self, address: int, data: bytes, size: int) -> Answer:
        self.gpu.write(address, np.frombuffer(data, np.uint8, size))
        return done()

    def _run(self, loaded: Any, launch: dict[str, Any]) -> None:
        launcher = Launcher(
            loaded[launch["kernel"]],
            launch["grid"],
            launch["block"],
            launch["shared"],
            None,
            launch["cluster"],
        )
        try:
            result = self.gpu.launch(launcher, lambda: _Packed(launch["parameters"]))  # type: ignore[arg-type]
        except ProgramFault:
            self._fault = Status.CUDA_ERROR_ILLEGAL_ADDRESS
        else:
            assert result is not None
            self._time = result.end_cycle / (1e3 * self.gpu.spec.clock.core_mhz)


class _Packed:
    """A launch's parameters as passed to the driver, in place of `Arguments`."""

    has_host_arrays = False
    keeps: tuple[Any, ...] = ()

    def __init__(self, block: bytes) -> None:
        self.block = block

    def copy_back(self) -> None:
        """Nothing was copied."""

    discard = copy_back


def no_driver(flags: int) -> None:
    """What the bindings' `cuInit` does if the library is missing."""
    raise RuntimeError("Failed to dlopen libcuda.so.1")


def replacing(pattern: str, replacement: str) -> Callable[[str], str]:
    """A change to PTX for `FakeCuda`: a bug of the GPU."""
    return lambda text: re.sub(pattern, replacement, text)
