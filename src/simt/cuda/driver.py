"""A real GPU, accessed through NVIDIA's driver with cuda-bindings; no toolkit is needed.

Limited to what simt needs: load PTX, allocate, copy, launch, time, read attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from simt.errors import CompileError, DriverError

from .toolkit import INSTALL

_LOG_BYTES = 1 << 16
_PORTABLE_CLUSTER = 8  # CTAs of a cluster that every GPU with clusters takes


class Driver:
    """The driver's functions. bindings: `cuda.bindings.driver`, or a stand-in with its functions and types.

    A call that fails raises DriverError with the driver's name for the error. Raises DriverError if there is
    no driver or it cannot be initialised.
    """

    def __init__(self, bindings: Any = None) -> None:
        self.bindings = _import_bindings() if bindings is None else bindings
        try:
            self.call("cuInit", 0)
        except DriverError as error:
            if error.status:
                raise
            raise DriverError(
                "no CUDA driver on this machine: libcuda.so.1 is missing, or older than CUDA 12; it is "
                "part of NVIDIA's GPU driver"
            ) from error

    @property
    def version(self) -> str:
        """The newest CUDA that the driver runs, such as "12.4"."""
        number = self.call("cuDriverGetVersion")
        return f"{number // 1000}.{number % 1000 // 10}"

    @property
    def device_count(self) -> int:
        return int(self.call("cuDeviceGetCount"))

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls a driver function and returns what follows the status: None, one value or a list. Raises
        DriverError unless it succeeds."""
        try:
            status, *values = getattr(self.bindings, function)(*arguments)
        except RuntimeError as error:  # the library or the function is missing
            raise DriverError(f"the CUDA driver is too old: it has no {function}") from error
        except ValueError as error:  # the bindings do not know the status
            raise DriverError(f"{function}: {error}") from error
        if status:
            _, text = self.bindings.cuGetErrorString(status)
            message = (text or b"unknown").decode("utf-8", "replace")
            raise DriverError(f"{function}: {status.name}: {message} ({int(status)})", int(status))
        return values[0] if len(values) == 1 else values or None


class DriverDevice:
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
        self._device = self.driver.call("cuDeviceGet", ordinal)
        context = self.driver.call("cuDevicePrimaryCtxRetain", self._device)
        self._open = True
        self.driver.call("cuCtxSetCurrent", context)

    def __enter__(self) -> DriverDevice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Releases the context, and everything loaded and allocated in it."""
        if self._open:
            self._open = False
            self.driver.call("cuDevicePrimaryCtxRelease", self._device)

    def reset(self) -> None:
        """Restarts with a new context, since nothing works any more after a kernel's fault."""
        self.driver.call("cuDevicePrimaryCtxReset", self._device)
        self.driver.call("cuCtxSetCurrent", self.driver.call("cuDevicePrimaryCtxRetain", self._device))

    # --- what it is -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return _text(self.driver.call("cuDeviceGetName", 256, self._device))

    @property
    def pci_bus_id(self) -> str:
        """Its place in the machine, such as "0000:3b:00.0", which other libraries know it by."""
        return _text(self.driver.call("cuDeviceGetPCIBusId", 16, self._device))

    @property
    def memory_bytes(self) -> int:
        return int(self.driver.call("cuDeviceTotalMem", self._device))

    def attribute(self, name: str) -> int:
        """name: a CUdevice_attribute without its prefix, such as "CLOCK_RATE": clocks in kHz, bus widths in
        bits, sizes in bytes."""
        attribute = getattr(self.driver.bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.driver.call("cuDeviceGetAttribute", attribute, self._device))

    @property
    def compute_capability(self) -> tuple[int, int]:
        return self.attribute("COMPUTE_CAPABILITY_MAJOR"), self.attribute("COMPUTE_CAPABILITY_MINOR")

    @property
    def arch(self) -> str:
        """The target for compiling programs, such as "sm_80"."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}{'a' if major == 9 else ''}"

    # --- programs ---------------------------------------------------------------------------------------

    def load(self, ptx: str, name: str = "PTX") -> DeviceModule:
        """Compiles and loads PTX. Raises CompileError with the driver's log where it does not compile."""
        bindings = self.driver.bindings
        option = bindings.CUjit_option
        information, errors = bytearray(_LOG_BYTES), bytearray(_LOG_BYTES)
        options = {
            option.CU_JIT_INFO_LOG_BUFFER: information,
            option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
            option.CU_JIT_ERROR_LOG_BUFFER: errors,
            option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
            option.CU_JIT_LOG_VERBOSE: 1,
        }
        image = ptx.encode() + b"\0"
        try:
            module = self.driver.call(
                "cuModuleLoadDataEx", image, len(options), list(options), list(options.values())
            )
        except DriverError as error:
            log = _text(errors).strip()
            if error.status == bindings.CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
                log += (
                    f"\nthe driver runs CUDA {self.driver.version} and knows no newer PTX: "
                    f"take NVRTC of that version or older, or a newer driver"
                )
            raise CompileError(f"{name}: the driver does not load the PTX: {error}\n{log}".rstrip()) from None
        return DeviceModule(self.driver, module, name, _text(information))

    # --- memory -----------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Device address of new, uninitialised memory."""
        return int(self.driver.call("cuMemAlloc", size))

    def free(self, address: int) -> None:
        self.driver.call("cuMemFree", address)

    def map(self, address: int, size: int) -> MappedMemory:
        """Memory at a given address, or a multiple of the page size before it. Raises DriverError if that
        cannot be had."""
        return MappedMemory(self.driver, self._device, address, size)

    def write(self, address: int, data: bytes) -> None:
        if data:
            self.driver.call("cuMemcpyHtoD", address, data, len(data))

    def fill(self, address: int, value: int, size: int) -> None:
        """Sets each byte to a value."""
        if size:
            self.driver.call("cuMemsetD8", address, value, size)

    def read(self, address: int, size: int) -> bytes:
        data = bytearray(size)
        if size:
            self.driver.call("cuMemcpyDtoH", data, address, size)
        return bytes(data)

    # --- time -------------------------------------------------------------------------------------------

    def event(self) -> DeviceEvent:
        """A point in the default stream."""
        return DeviceEvent(self.driver)

    def synchronize(self) -> None:
        """Waits for all launches. Raises DriverError for faults of kernels."""
        self.driver.call("cuCtxSynchronize")


class DeviceModule:
    """PTX in the memory of a GPU. log: what the driver's compiler says, such as registers of each kernel."""

    def __init__(self, driver: Driver, handle: Any, name: str, log: str) -> None:
        self._driver = driver
        self._handle = handle
        self.name = name
        self.log = log

    def kernel(self, name: str) -> DeviceKernel:
        """Raises DriverError if there is no kernel of that name."""
        function = self._driver.call("cuModuleGetFunction", self._handle, name.encode())
        return DeviceKernel(self._driver, function)

    def variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a variable at global or constant scope."""
        address, size = self._driver.call("cuModuleGetGlobal", self._handle, name.encode())
        return int(address), size

    def unload(self) -> None:
        self._driver.call("cuModuleUnload", self._handle)


class DeviceKernel:
    """A kernel that can be launched."""

    def __init__(self, driver: Driver, handle: Any) -> None:
        self._driver = driver
        self._handle = handle

    def attribute(self, name: str) -> int:
        """name: a CUfunction_attribute without its prefix, such as "NUM_REGS". Sizes are in bytes."""
        return int(self._driver.call("cuFuncGetAttribute", self._attribute(name), self._handle))

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
        bindings = self._driver.bindings
        if shared:  # more than 48 KiB, with the static part, must be asked for
            self._set("MAX_DYNAMIC_SHARED_SIZE_BYTES", shared)
        if math.prod(cluster) > _PORTABLE_CLUSTER:
            self._set("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
        config = bindings.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes = shared
        if tuple(cluster) != (1, 1, 1):
            attribute = bindings.CUlaunchAttribute()
            attribute.id = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            dimensions = attribute.value.clusterDim
            dimensions.x, dimensions.y, dimensions.z = cluster
            config.attrs, config.numAttrs = [attribute], 1
        # One packed block, laid out as PTX says; `kernelParams` would need the type of each parameter.
        packed, size = np.frombuffer(parameters, np.uint8), np.array([len(parameters)], np.uint64)
        extra = np.array(
            [
                bindings.CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT,
                packed.ctypes.data,
                bindings.CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT,
                size.ctypes.data,
                bindings.CU_LAUNCH_PARAM_END_AS_INT,
            ],
            np.uint64,
        )
        self._driver.call(
            "cuLaunchKernelEx", config, self._handle, None, extra.ctypes.data if parameters else 0
        )

    def _set(self, name: str, value: int) -> None:
        self._driver.call("cuFuncSetAttribute", self._handle, self._attribute(name), value)

    def _attribute(self, name: str) -> Any:
        return getattr(self._driver.bindings.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")


class DeviceEvent:
    """A point in time on the GPU."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._handle = driver.call("cuEventCreate", 0)

    def record(self) -> DeviceEvent:
        """Records it after everything launched so far."""
        self._driver.call("cuEventRecord", self._handle, None)
        return self

    def milliseconds_since(self, start: DeviceEvent) -> float:
        """Time between two recorded events. Waits for this one."""
        self._driver.call("cuEventSynchronize", self._handle)
        return float(self._driver.call("cuEventElapsedTime", start._handle, self._handle))

    def destroy(self) -> None:
        self._driver.call("cuEventDestroy", self._handle)


class MappedMemory:
    """Device memory at a chosen address. address, size: of the pages mapped."""

    def __init__(self, driver: Driver, device: int, address: int, size: int) -> None:
        self._driver = driver
        bindings = driver.bindings
        properties = bindings.CUmemAllocationProp()
        properties.type = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = device
        access = bindings.CUmemAccessDesc()
        access.location = properties.location
        access.flags = bindings.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        smallest = bindings.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        page = driver.call("cuMemGetAllocationGranularity", properties, smallest)
        wanted = address // page * page
        self.size = -(-(address + size - wanted) // page) * page
        self.address = int(driver.call("cuMemAddressReserve", self.size, 0, wanted, 0))
        self._handle: Any = None
        self._mapped = False
        try:
            if self.address != wanted:
                raise DriverError(
                    f"the driver has no memory at {wanted:#x}: it offers {self.address:#x}; "
                    "this process already uses that range"
                )
            self._handle = driver.call("cuMemCreate", self.size, properties, 0)
            driver.call("cuMemMap", self.address, self.size, 0, self._handle, 0)
            self._mapped = True
            driver.call("cuMemSetAccess", self.address, self.size, [access], 1)
        except DriverError:
            self.release()
            raise

    def release(self) -> None:
        """Releases pages and addresses."""
        if self._mapped:
            self._mapped = False
            self._driver.call("cuMemUnmap", self.address, self.size)
        if self._handle is not None:
            self._driver.call("cuMemRelease", self._handle)
            self._handle = None
        if self.size:
            self._driver.call("cuMemAddressFree", self.address, self.size)
            self.size = 0


def _import_bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ModuleNotFoundError:
        raise DriverError(f"a real GPU needs cuda-bindings, which is not installed: {INSTALL}") from None
    return driver


def _text(characters: bytes | bytearray) -> str:
    """A C string."""
    return characters.partition(b"\0")[0].decode("utf-8", "replace")
