"""Triton through its own driver, with autotuning by simulated time.

Triton's own benchmarker measures with PyTorch; this one uses events of the driver API.
"""

import sys

import numpy as np
import triton
import triton.language as tl
from cuda.bindings import driver

TIMED = "timed" in sys.argv


def ok(result):
    status, *values = result
    assert status == driver.CUresult.CUDA_SUCCESS, status
    return values[0] if values else None


class Array:
    """A device array as Triton takes it: with `dtype` and `data_ptr()`."""

    def __init__(self, host):
        self.host, self.dtype = host, str(host.dtype)
        self.address = ok(driver.cuMemAlloc(host.nbytes))
        ok(driver.cuMemcpyHtoD(self.address, host.ctypes.data, host.nbytes))

    def data_ptr(self):
        return int(self.address)

    def numpy(self):
        result = np.empty_like(self.host)
        ok(driver.cuMemcpyDtoH(result.ctypes.data, self.address, result.nbytes))
        return result


def bench(call, quantiles):
    """Milliseconds of a call, with a cold L2."""
    call()
    size = 2 * ok(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0))
    flush = ok(driver.cuMemAlloc(size))
    start, end = (ok(driver.cuEventCreate(0)) for _ in "se")
    ok(driver.cuMemsetD32Async(flush, 0, size // 4, 0))
    ok(driver.cuEventRecord(start, 0))
    call()
    ok(driver.cuEventRecord(end, 0))
    ok(driver.cuEventSynchronize(end))
    ok(driver.cuMemFree(flush))
    return [ok(driver.cuEventElapsedTime(start, end))] * len(quantiles)


CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((64, 1), (1024, 4))]


@triton.autotune(CONFIGS, key=["n"], do_bench=bench)
@triton.jit
def axpy(a, x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, a * tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns + i
    values = tl.load(x + row, i < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row, values / tl.sum(values, 0), i < columns)


triton.runtime.driver.active.get_current_device()
rng = np.random.default_rng(1)
n = 20_000
x, y, out = (Array(rng.random(n, dtype=np.float32)) for _ in range(3))
axpy[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](2.0, x, y, out, n)
assert np.allclose(out.numpy(), 2 * x.host + y.host)
times = {config.kwargs["BLOCK"]: timings[0] for config, timings in axpy.configs_timings.items()}
assert len(times) == 2 and all((time > 0) == TIMED for time in times.values())
if TIMED:
    assert axpy.best_config.kwargs["BLOCK"] == min(times, key=times.get)

rows, columns = 4, 100
x, out = (Array(rng.random((rows, columns), dtype=np.float32)) for _ in range(2))
softmax[(rows,)](x, out, columns, BLOCK=128)
exponents = np.exp(x.host)
assert np.allclose(out.numpy(), exponents / exponents.sum(1, keepdims=True), rtol=1e-4)
print("ok")
