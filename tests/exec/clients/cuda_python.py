"""cuda-python: the driver API and NVRTC from Python, without anything else."""

import ctypes
import sys

import numpy as np

try:
    from cuda.bindings import driver, nvrtc
except ImportError:
    from cuda import cuda as driver
    from cuda import nvrtc

TIMED = "timed" in sys.argv


def ok(result):
    """What a function returned beside its status."""
    status, *values = result
    assert status == type(status)(0), status
    return values[0] if len(values) == 1 else values


def compiled(source, name, arch):
    program = ok(nvrtc.nvrtcCreateProgram(source, name, 0, [], []))
    options = [f"--gpu-architecture=compute_{arch}".encode(), b"--fmad=false"]
    ok(nvrtc.nvrtcCompileProgram(program, len(options), options))
    text = b" " * ok(nvrtc.nvrtcGetPTXSize(program))
    ok(nvrtc.nvrtcGetPTX(program, text))
    return text


SOURCE = b"""
__constant__ float scale;
extern "C" __global__ void scaled(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale * x[i];
}
"""

ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
context = ok(driver.cuDevicePrimaryCtxRetain(device))
ok(driver.cuCtxSetCurrent(context))
major, minor = (
    ok(driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, f"{a}_{which}"), device))
    for a in ("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY",)
    for which in ("MAJOR", "MINOR")
)
module = ok(driver.cuModuleLoadData(np.char.array(compiled(SOURCE, b"scaled.cu", 10 * major + minor))))
kernel = ok(driver.cuModuleGetFunction(module, b"scaled"))
address, size = ok(driver.cuModuleGetGlobal(module, b"scale"))
scale = np.float32(2.5)
assert size == 4
stream = ok(driver.cuStreamCreate(0))
start, end = (ok(driver.cuEventCreate(0)) for _ in "se")

n = 5000
x = np.arange(n, dtype=np.float32)
y = np.zeros_like(x)
to, out = (ok(driver.cuMemAlloc(x.nbytes)) for _ in "xy")
ok(driver.cuMemcpyHtoD(address, np.array([scale]).ctypes.data, 4))
ok(driver.cuMemcpyHtoDAsync(to, x.ctypes.data, x.nbytes, stream))
arguments = ((to, out, n), (None, None, ctypes.c_int))
ok(driver.cuEventRecord(start, stream))
ok(driver.cuLaunchKernel(kernel, (n + 127) // 128, 1, 1, 128, 1, 1, 0, stream, arguments, 0))
ok(driver.cuEventRecord(end, stream))
ok(driver.cuMemcpyDtoHAsync(y.ctypes.data, out, y.nbytes, stream))
ok(driver.cuStreamSynchronize(stream))
assert np.array_equal(y, scale * x)
assert (ok(driver.cuEventElapsedTime(start, end)) > 0) == TIMED
for memory in (to, out):
    ok(driver.cuMemFree(memory))
ok(driver.cuModuleUnload(module))
print("ok")
