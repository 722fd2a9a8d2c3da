"""numba-cuda through its own driver: kernels, shared memory, atomics, streams, events, debug=True.

lineinfo and lto keep PTX in what nvJitLink makes, where that is installed.
"""

import sys

import numpy as np
from numba import cuda, float32, int32

TIMED = "timed" in sys.argv
OPTIONS = {"lineinfo": True, "lto": False}
THREADS = 128


@cuda.jit(device=True, **OPTIONS)
def square(x):
    return x * x


@cuda.jit(**OPTIONS)
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * square(x[i])


@cuda.jit(**OPTIONS)
def block_sums(x, sums):
    part = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(sums, 0, part[0])


@cuda.jit(**OPTIONS)
def histogram(values, bins):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, values[i], int32(1))


@cuda.jit(**OPTIONS)
def transposed(a, b):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        b[j, i] = a[i, j]


@cuda.jit(debug=True, opt=False)
def quotients(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 12 // x[i]


n = 2000
x, y = np.arange(n, dtype=np.float32) % 7, np.ones(n, np.float32)
stream = cuda.stream()
start, end = cuda.event(), cuda.event()
dx, dy = cuda.to_device(x, stream), cuda.to_device(y, stream)
grid = (n + THREADS - 1) // THREADS
start.record(stream)
axpy[grid, THREADS, stream](np.float32(3), dx, dy)
end.record(stream)
assert np.array_equal(dy.copy_to_host(stream=stream), y + 3 * x * x)
stream.synchronize()
assert (start.elapsed_time(end) > 0) == TIMED

sums = cuda.to_device(np.zeros(1, np.float32))
block_sums[grid, THREADS](dx, sums)
assert sums.copy_to_host()[0] == x.sum()

values = np.random.default_rng(1).integers(0, 16, n).astype(np.int32)
bins = cuda.to_device(np.zeros(16, np.int32))
histogram[4, THREADS](cuda.to_device(values), bins)
assert np.array_equal(bins.copy_to_host(), np.bincount(values, minlength=16))

a = np.arange(15 * 20, dtype=np.float64).reshape(15, 20)
b = cuda.device_array((20, 15))
transposed[(2, 2), (16, 16)](a, b)
assert np.array_equal(b.copy_to_host(), a.T)
divisors, found = np.arange(1, 5, dtype=np.int32), np.zeros(4, np.int32)
quotients[1, 32](divisors, found)
assert np.array_equal(found, 12 // divisors)
divisors[2] = 0
try:
    quotients[1, 32](divisors, found)
except ZeroDivisionError:
    print("ok")
