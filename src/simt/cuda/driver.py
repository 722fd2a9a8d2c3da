"""A real GPU, through NVIDIA's driver library: no toolkit, no runtime library, no compiled code of our own.

Just what simt needs: load PTX, allocate, copy, launch, time, ask for attributes. Names and numbers: `cuda.h`
of CUDA 12 and 13 (CUDA Driver API reference).
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from ctypes import byref, c_char, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from enum import IntEnum
from types import TracebackType
from typing import Any

from simt.errors import CompileError, DriverError

_LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
_LOG_BYTES = 1 << 16

# CUjit_option
_INFO_LOG, _INFO_LOG_SIZE, _ERROR_LOG, _ERROR_LOG_SIZE, _LOG_VERBOSE = 3, 4, 5, 6, 12
# CU_LAUNCH_PARAM_*
_END, _BUFFER_POINTER, _BUFFER_SIZE = 0, 1, 2
_CLUSTER_DIMENSION = 4  # CUlaunchAttributeID
_PORTABLE_CLUSTER = 8  # CTAs of a cluster that every GPU with clusters takes
_UNSUPPORTED_PTX_VERSION = 222  # CUresult
_PINNED, _ON_DEVICE, _READ_WRITE = 1, 1, 3  # CUmemAllocationType, CUmemLocationType, CUmemAccess_flags


class Attribute(IntEnum):
    """Attributes of a device (CUdevice_attribute)."""

    MAX_THREADS_PER_BLOCK = 1
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    """bytes, without asking for more"""
    WARP_SIZE = 10
    CLOCK_RATE = 13
    """kHz"""
    MULTIPROCESSOR_COUNT = 16
    MEMORY_CLOCK_RATE = 36
    """kHz"""
    GLOBAL_MEMORY_BUS_WIDTH = 37
    """bits"""
    L2_CACHE_SIZE = 38
    """bytes"""
    MAX_THREADS_PER_MULTIPROCESSOR = 39
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    """bytes"""
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    """bytes"""
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106
    RESERVED_SHARED_MEMORY_PER_BLOCK = 111
    """bytes"""


class FunctionAttribute(IntEnum):
    """Attributes of a kernel (CUfunction_attribute)."""

    MAX_THREADS_PER_BLOCK = 0
    SHARED_SIZE_BYTES = 1
    LOCAL_SIZE_BYTES = 3
    NUM_REGS = 4
    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14


class _Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _AllocationProperties(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = (
        ("type", c_int),
        ("handle_types", c_int),
        ("location", _Location),
        ("windows", c_void_p),
        ("flags", c_uint64),
    )


class _Access(ctypes.Structure):  # CUmemAccessDesc
    _fields_ = (("location", _Location), ("flags", c_int))


class _LaunchAttribute(ctypes.Structure):  # CUlaunchAttribute, its value as a cluster's dimensions
    _fields_ = (("id", c_int), ("pad", c_int), ("cluster", c_uint * 3), ("rest", c_uint * 13))


class _LaunchConfig(ctypes.Structure):  # CUlaunchConfig
    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


class Driver:
    """The driver library. library: an object with its functions, such as a stand-in for tests; by default the
    one that is installed.

    Every call that fails raises DriverError with the driver's name for it. Raises DriverError if there is
    no driver, or it cannot be initialised.
    """

    def __init__(self, library: Any = None) -> None:
        self._library = _load_library() if library is None else library
        self.call("cuInit", 0)

    @property
    def version(self) -> str:
        """The newest CUDA that the driver runs, such as "12.4"."""
        number = c_int()
        self.call("cuDriverGetVersion", byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    @property
    def device_count(self) -> int:
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        return count.value

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function of the driver and raises DriverError unless it succeeds."""
        try:
            entry = getattr(self._library, function)
        except AttributeError:
            raise DriverError(f"the CUDA driver is too old: it has no {function}") from None
        if status := entry(*arguments):
            raise DriverError(f"{function}: {self._text(status)}", status)

    def _text(self, status: int) -> str:
        parts = []
        for function in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            if getattr(self._library, function)(status, byref(text)) == 0 and text.value:
                parts.append(text.value.decode("utf-8", "replace"))
        return f"{': '.join(parts) or 'error'} ({status})"


class Device:
    """A GPU of this machine, with its primary context, current in the thread that makes it. Closes as a
    context manager.

    Raises DriverError if there is no such device.
    """

    def __init__(self, ordinal: int = 0, driver: Driver | None = None) -> None:
        self.driver = driver or Driver()
        self.ordinal = ordinal
        count = self.driver.device_count
        if not 0 <= ordinal < count:
            raise DriverError(f"no GPU {ordinal}: this machine has {count}")
        device = c_int()
        self.driver.call("cuDeviceGet", byref(device), ordinal)
        self._device = device.value
        context = c_void_p()
        self.driver.call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self._open = True
        self.driver.call("cuCtxSetCurrent", context)

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the context back, and with it all that was loaded and allocated."""
        if self._open:
            self._open = False
            self.driver.call("cuDevicePrimaryCtxRelease_v2", self._device)

    def reset(self) -> None:
        """Begins with a new context: after a kernel's fault nothing else works any more."""
        self.driver.call("cuDevicePrimaryCtxReset_v2", self._device)
        context = c_void_p()
        self.driver.call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self.driver.call("cuCtxSetCurrent", context)

    # --- what it is -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        text = (c_char * 256)()
        self.driver.call("cuDeviceGetName", text, len(text), self._device)
        return text.value.decode("utf-8", "replace")

    @property
    def memory_bytes(self) -> int:
        size = c_size_t()
        self.driver.call("cuDeviceTotalMem_v2", byref(size), self._device)
        return size.value

    def attribute(self, attribute: Attribute) -> int:
        value = c_int()
        self.driver.call("cuDeviceGetAttribute", byref(value), int(attribute), self._device)
        return value.value

    @property
    def compute_capability(self) -> tuple[int, int]:
        return (
            self.attribute(Attribute.COMPUTE_CAPABILITY_MAJOR),
            self.attribute(Attribute.COMPUTE_CAPABILITY_MINOR),
        )

    @property
    def arch(self) -> str:
        """What programs are compiled for, such as "sm_80"."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}{'a' if major == 9 else ''}"

    # --- programs ---------------------------------------------------------------------------------------

    def load(self, ptx: str, name: str = "PTX") -> DeviceModule:
        """Compiles and loads PTX. Raises CompileError with the driver's log where it does not compile."""
        information, errors = (c_char * _LOG_BYTES)(), (c_char * _LOG_BYTES)()
        options = (c_int * 5)(_INFO_LOG, _INFO_LOG_SIZE, _ERROR_LOG, _ERROR_LOG_SIZE, _LOG_VERBOSE)
        values = (c_void_p * 5)(
            ctypes.cast(information, c_void_p), _LOG_BYTES, ctypes.cast(errors, c_void_p), _LOG_BYTES, 1
        )
        module = c_void_p()
        try:
            self.driver.call(
                "cuModuleLoadDataEx", byref(module), ctypes.c_char_p(ptx.encode()), 5, options, values
            )
        except DriverError as error:
            log = errors.value.decode("utf-8", "replace").strip()
            if error.status == _UNSUPPORTED_PTX_VERSION:
                log += (
                    f"\nthe driver runs CUDA {self.driver.version} and knows no newer PTX: "
                    f"take NVRTC of that version or older, or a newer driver"
                )
            raise CompileError(f"{name}: the driver does not load the PTX: {error}\n{log}".rstrip()) from None
        return DeviceModule(self.driver, module, name, information.value.decode("utf-8", "replace"))

    # --- memory -----------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Device address of new memory, its contents unknown."""
        address = c_uint64()
        self.driver.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        self.driver.call("cuMemFree_v2", c_uint64(address))

    def map(self, address: int, size: int) -> MappedMemory:
        """Memory at a given address, or a multiple of the page size before it. Raises DriverError if that
        cannot be had."""
        return MappedMemory(self.driver, self._device, address, size)

    def write(self, address: int, data: bytes) -> None:
        if data:
            self.driver.call("cuMemcpyHtoD_v2", c_uint64(address), ctypes.c_char_p(data), c_size_t(len(data)))

    def fill(self, address: int, value: int, size: int) -> None:
        """Sets each byte to a value."""
        if size:
            self.driver.call("cuMemsetD8_v2", c_uint64(address), c_ubyte(value), c_size_t(size))

    def read(self, address: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        if size:
            self.driver.call("cuMemcpyDtoH_v2", data, c_uint64(address), c_size_t(size))
        return data.raw

    # --- time -------------------------------------------------------------------------------------------

    def event(self) -> DeviceEvent:
        """A point in the default stream."""
        return DeviceEvent(self.driver)

    def synchronize(self) -> None:
        """Waits for all launches. Raises DriverError for what a kernel did wrong."""
        self.driver.call("cuCtxSynchronize")


class DeviceModule:
    """PTX in the memory of a GPU. log: what the driver's compiler says, such as registers of each kernel."""

    def __init__(self, driver: Driver, handle: c_void_p, name: str, log: str) -> None:
        self._driver = driver
        self._handle = handle
        self.name = name
        self.log = log

    def kernel(self, name: str) -> DeviceKernel:
        """Raises DriverError if there is none of that name."""
        function = c_void_p()
        self._driver.call(
            "cuModuleGetFunction", byref(function), self._handle, ctypes.c_char_p(name.encode())
        )
        return DeviceKernel(self._driver, function)

    def variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a variable at global or constant scope."""
        address, size = c_uint64(), c_size_t()
        self._driver.call(
            "cuModuleGetGlobal_v2", byref(address), byref(size), self._handle, ctypes.c_char_p(name.encode())
        )
        return address.value, size.value

    def unload(self) -> None:
        self._driver.call("cuModuleUnload", self._handle)


class DeviceKernel:
    """A kernel that can be launched."""

    def __init__(self, driver: Driver, handle: c_void_p) -> None:
        self._driver = driver
        self._handle = handle

    def attribute(self, attribute: FunctionAttribute) -> int:
        value = c_int()
        self._driver.call("cuFuncGetAttribute", byref(value), int(attribute), self._handle)
        return value.value

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        parameters: bytes = b"",
        shared: int = 0,
        cluster: Sequence[int] = (1, 1, 1),
    ) -> None:
        """Puts a launch into the default stream. parameters: their bytes, laid out as PTX says. shared: bytes
        of dynamic shared memory. grid: in CTAs, also with a cluster."""
        if shared:  # more than 48 KiB, with the static part, must be asked for
            limit = int(FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)
            self._driver.call("cuFuncSetAttribute", self._handle, limit, shared)
        if math.prod(cluster) > _PORTABLE_CLUSTER:
            larger = int(FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
            self._driver.call("cuFuncSetAttribute", self._handle, larger, 1)
        buffer = ctypes.create_string_buffer(parameters, max(1, len(parameters)))
        size = c_size_t(len(parameters))
        extra = (c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(buffer), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        config = _LaunchConfig((c_uint * 3)(*grid), (c_uint * 3)(*block), shared, None, None, 0)
        attribute = _LaunchAttribute(_CLUSTER_DIMENSION, 0, (c_uint * 3)(*cluster))
        if tuple(cluster) != (1, 1, 1):
            config.attributes, config.attribute_count = ctypes.addressof(attribute), 1
        self._driver.call(
            "cuLaunchKernelEx", byref(config), self._handle, None, extra if parameters else None
        )


class DeviceEvent:
    """A point in time on the GPU."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._handle = c_void_p()
        driver.call("cuEventCreate", byref(self._handle), 0)

    def record(self) -> DeviceEvent:
        """Puts it behind what was launched so far."""
        self._driver.call("cuEventRecord", self._handle, None)
        return self

    def milliseconds_since(self, start: DeviceEvent) -> float:
        """Time between two recorded events. Waits for this one."""
        self._driver.call("cuEventSynchronize", self._handle)
        elapsed = c_float()
        self._driver.call("cuEventElapsedTime", byref(elapsed), start._handle, self._handle)
        return elapsed.value

    def destroy(self) -> None:
        self._driver.call("cuEventDestroy_v2", self._handle)


class MappedMemory:
    """Device memory at an address of one's choice. address, size: of the pages that were mapped."""

    def __init__(self, driver: Driver, device: int, address: int, size: int) -> None:
        self._driver = driver
        location = _Location(_ON_DEVICE, device)
        properties = _AllocationProperties(_PINNED, 0, location, None, 0)
        page = c_size_t()
        driver.call("cuMemGetAllocationGranularity", byref(page), byref(properties), 0)
        self.address = address // page.value * page.value
        self.size = -(-(address + size - self.address) // page.value) * page.value
        found = c_uint64()
        driver.call(
            "cuMemAddressReserve",
            byref(found),
            c_size_t(self.size),
            c_size_t(0),
            c_uint64(self.address),
            c_uint64(0),
        )
        self._handle = c_uint64()
        self._mapped = False
        reserved, self.address = self.address, found.value
        try:
            if found.value != reserved:
                raise DriverError(
                    f"the driver has no memory at {reserved:#x}: it offers {found.value:#x}; "
                    "something else of this process lies there"
                )
            driver.call(
                "cuMemCreate", byref(self._handle), c_size_t(self.size), byref(properties), c_uint64(0)
            )
            driver.call("cuMemMap", found, c_size_t(self.size), c_size_t(0), self._handle, c_uint64(0))
            self._mapped = True
            access = _Access(location, _READ_WRITE)
            driver.call("cuMemSetAccess", found, c_size_t(self.size), byref(access), c_size_t(1))
        except DriverError:
            self.release()
            raise

    def release(self) -> None:
        """Gives pages and addresses back."""
        address, size = c_uint64(self.address), c_size_t(self.size)
        if self._mapped:
            self._mapped = False
            self._driver.call("cuMemUnmap", address, size)
        if self._handle.value:
            self._driver.call("cuMemRelease", self._handle)
            self._handle.value = 0
        if self.size:
            self._driver.call("cuMemAddressFree", address, size)
            self.size = 0


def _load_library() -> Any:
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DriverError(
        f"no CUDA driver on this machine: {_LIBRARIES[0]} is not there; NVIDIA's driver of a GPU brings it"
    )
